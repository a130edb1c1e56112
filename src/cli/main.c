// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include "net/rpc_shard.h"

int main(int argc, char **argv) {
    net_process_init(); // the allocator's thresholds before anything allocates
    struct cli cli = {0};
    int status = cli_parse(&cli, argc - 1, argv + 1);
    if (status != 0) return status < 0 ? CLI_DONE : status;
    status = cli.command->run(&cli);
    if (cli.client) mink_disconnect(cli.client);
    return status;
}
