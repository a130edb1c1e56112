// SPDX-License-Identifier: Apache-2.0
// Arguments: which command, which options, what is wrong with them, and the help.
#include "cli/cli.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How many words of argv a path like "table create" matches; 0 = not this command.
static int path_words(const char *path, int argc, char **argv) {
    int words = 0;
    for (const char *at = path; *at;) {
        size_t size = strcspn(at, " ");
        if (words >= argc || strlen(argv[words]) != size || strncmp(argv[words], at, size) != 0) return 0;
        words++;
        at += size + (at[size] == ' ');
    }
    return words;
}

static bool hidden(const struct cli_command *c) { return c->summary == NULL; }

static void print_overview(FILE *out) {
    fprintf(out, "Mink: a streaming table store.\n\nUsage: mink COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:\n");
    for (const struct cli_command *c = cli_commands; c->path; c++) {
        if (hidden(c)) continue;
        char left[80];
        snprintf(left, sizeof left, "%s%s%s", c->path, c->arguments ? " " : "", c->arguments ? c->arguments : "");
        fprintf(out, "  %-32s %s\n", left, c->summary);
    }
    fprintf(out, "\nStart here:\n  mink dev                       # a server on this machine\n"
                 "  mink db create shop && mink table create shop.events 'id BIGINT, city STRING'\n"
                 "  printf 'id,city\\n1,Oslo\\n' | mink put shop.events --format csv\n  mink get shop.events\n\n"
                 "`mink COMMAND --help` shows arguments, options and examples.\n");
}

static void print_options(FILE *out, const struct cli_option *options) {
    for (const struct cli_option *o = options; o && o->name; o++) {
        char left[64];
        char letter[8] = "    ";
        if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
        fprintf(out, "  %-28s %s\n", left, o->help);
    }
}

static void print_help(FILE *out, const struct cli_command *c) {
    fprintf(out, "mink %s: %s\n\nUsage: mink %s%s%s [OPTIONS]\n", c->path, c->summary, c->path, c->arguments ? " " : "", c->arguments ? c->arguments : "");
    if (c->details) fprintf(out, "\n%s\n", c->details);
    if (c->options) {
        fprintf(out, "\nOptions:\n");
        print_options(out, c->options);
    }
    fprintf(out, "\nGlobal options:\n");
    print_options(out, cli_global_options);
    if (c->examples) {
        fprintf(out, "\nExamples:\n");
        for (const char *at = c->examples; *at;) {
            size_t size = strcspn(at, "\n");
            fprintf(out, "  %.*s\n", (int)size, at);
            at += size + (at[size] == '\n');
        }
    }
}

int cli_usage(const struct cli *cli, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "mink: ");
    vfprintf(stderr, format, args);
    va_end(args);
    if (cli->command) fprintf(stderr, "\nTry: mink %s --help\n", cli->command->path);
    else fprintf(stderr, "\nTry: mink --help\n");
    return CLI_USAGE;
}

static int unknown_command(struct cli *cli, int argc, char **argv) {
    struct nearest near;
    nearest_init(&near, argv[0]);
    bool group = false;
    for (const struct cli_command *c = cli_commands; c->path; c++) {
        if (hidden(c)) continue;
        char first[32];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(c->path, " "), c->path);
        nearest_offer(&near, first);
        group |= strcmp(first, argv[0]) == 0;
    }
    if (group) { // "mink table": the group exists
        char known[256] = "";
        struct nearest second;
        nearest_init(&second, argc > 1 ? argv[1] : "");
        for (const struct cli_command *c = cli_commands; c->path; c++) {
            size_t size = strcspn(c->path, " ");
            if (strlen(argv[0]) != size || strncmp(c->path, argv[0], size) != 0 || c->path[size] == 0) continue;
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", known[0] ? ", " : "", c->path + size + 1);
            nearest_offer(&second, c->path + size + 1);
        }
        if (argc < 2 || argv[1][0] == '-') return cli_usage(cli, "mink %s: say what to do: %s", argv[0], known);
        const char *best = nearest_found(&second);
        return cli_usage(cli, "unknown command: %s %s%s%s%s (known: %s)", argv[0], argv[1], best ? "; did you mean: " : "", best ? best : "", best ? "?" : "", known);
    }
    const char *best = nearest_found(&near);
    return cli_usage(cli, "unknown command: %s%s%s%s", argv[0], best ? "; did you mean: " : "", best ? best : "", best ? "?" : "");
}

static const struct cli_option *find_option(const struct cli_option *options, const char *name, size_t size, char letter) {
    for (const struct cli_option *o = options; o && o->name; o++)
        if (letter ? o->letter == letter : strlen(o->name) == size && strncmp(o->name, name, size) == 0) return o;
    return NULL;
}

static int unknown_option(struct cli *cli, const char *given) {
    struct nearest near;
    nearest_init(&near, given);
    const struct cli_option *lists[2] = {cli->command->options, cli_global_options};
    for (int i = 0; i < 2; i++)
        for (const struct cli_option *o = lists[i]; o && o->name; o++) {
            char name[64];
            snprintf(name, sizeof name, "--%s", o->name);
            nearest_offer(&near, name);
        }
    const char *best = nearest_found(&near);
    return cli_usage(cli, "unknown option: %s%s%s%s", given, best ? "; did you mean: " : "", best ? best : "", best ? "?" : "");
}

int cli_parse(struct cli *cli, int argc, char **argv) {
    if (argc < 1 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        print_overview(argc < 1 ? stderr : stdout);
        return argc < 1 ? CLI_USAGE : -1;
    }
    if (strcmp(argv[0], "--version") == 0) argv[0] = (char *)"version";
    int words = 0;
    for (const struct cli_command *c = cli_commands; c->path && !words; c++)
        if ((words = path_words(c->path, argc, argv)) != 0) cli->command = c;
    if (!words) return unknown_command(cli, argc, argv);
    bool options_end = strcmp(cli->command->path, "__complete") == 0;
    for (int i = words; i < argc; i++) {
        const char *word = argv[i];
        if (options_end || word[0] != '-' || word[1] == 0) {
            if (cli->argument_count == (int)(sizeof cli->arguments / sizeof cli->arguments[0])) return cli_usage(cli, "too many arguments");
            cli->arguments[cli->argument_count++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options_end = true;
            continue;
        }
        bool is_long = word[1] == '-';
        const char *name = word + (is_long ? 2 : 1), *equals = strchr(name, '=');
        size_t size = equals ? (size_t)(equals - name) : strlen(name);
        if (!is_long && size > 1) return cli_usage(cli, "%s: give short options one by one", word);
        const struct cli_option *o = find_option(cli->command->options, name, size, is_long ? 0 : name[0]);
        if (!o) o = find_option(cli_global_options, name, size, is_long ? 0 : name[0]);
        if (!o && is_long && cli->command->free_options) {
            const char *value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
            if (!value) return cli_usage(cli, "%s needs a value", word);
            if (cli->free_count == CLI_OPTIONS_MAX) return cli_usage(cli, "too many options");
            cli->free_keys[cli->free_count] = equals ? mem_strndup(name, size) : name;
            cli->free_values[cli->free_count++] = value;
            continue;
        }
        if (!o) return unknown_option(cli, word);
        const char *value = "";
        if (o->value) {
            value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
            if (!value) return cli_usage(cli, "--%s needs a value: %s", o->name, o->value);
        } else if (equals) {
            return cli_usage(cli, "--%s takes no value", o->name);
        }
        if (cli->given_count == CLI_OPTIONS_MAX) return cli_usage(cli, "too many options");
        cli->given[cli->given_count].option = o;
        cli->given[cli->given_count++].value = value;
    }
    if (cli_flag(cli, "help")) {
        print_help(stdout, cli->command);
        return -1;
    }
    cli->json = cli_flag(cli, "json");
    cli->verbose = cli_flag(cli, "verbose");
    if (cli->argument_count < cli->command->argument_min) return cli_usage(cli, "mink %s: missing argument: %s", cli->command->path, cli->command->arguments);
    if (cli->command->argument_max >= 0 && cli->argument_count > cli->command->argument_max)
        return cli_usage(cli, "mink %s: too many arguments (\"%s\")", cli->command->path, cli->arguments[cli->command->argument_max]);
    return 0;
}

const char *cli_option(const struct cli *cli, const char *name) {
    for (int i = cli->given_count; i-- > 0;)
        if (strcmp(cli->given[i].option->name, name) == 0) return cli->given[i].value;
    return NULL;
}

bool cli_flag(const struct cli *cli, const char *name) { return cli_option(cli, name) != NULL; }

int cli_option_int(const struct cli *cli, const char *name, int64_t fallback, int64_t min, int64_t max, int64_t *out) {
    const char *text = cli_option(cli, name);
    *out = fallback;
    if (!text) return 0;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || *end || end == text || v < min || v > max) return cli_usage(cli, "--%s: \"%s\" is not a whole number from %lld to %lld", name, text, (long long)min, (long long)max);
    *out = v;
    return 0;
}

// ---- completion

static void print_matching(const char *candidate, const char *prefix) {
    if (strncmp(candidate, prefix, strlen(prefix)) == 0) printf("%s\n", candidate);
}

static void complete_tables(struct cli *cli, const char *prefix) {
    struct mink_options options = {.server = getenv("MINK_SERVER"), .timeout_ms = 1000};
    struct mink_results results = {0};
    if (mink_connect(&options, &cli->client, NULL) != MINK_STATUS_OK) return;
    if (mink_action(cli->client, "list-tables", "{}", &results, NULL) != MINK_STATUS_OK) return;
    for (size_t i = 0; i < results.count; i++) { // {"table":"shop.events", …}
        const char *at = strstr(results.items[i], "\"table\":\"");
        if (!at) continue;
        at += 9;
        char name[512];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\""), at);
        print_matching(name, prefix);
    }
    mink_results_free(&results);
}

// __complete WORD… LAST: candidates for the last word, one a line.
int cli_run_complete(struct cli *cli) {
    int count = cli->argument_count;
    const char *last = count ? cli->arguments[count - 1] : "";
    int before = count ? count - 1 : 0, words = 0;
    const struct cli_command *command = NULL;
    for (const struct cli_command *c = cli_commands; c->path && !words; c++)
        if ((words = path_words(c->path, before, (char **)cli->arguments)) != 0) command = c;
    if (!command) {
        char seen[64] = "";
        for (const struct cli_command *c = cli_commands; c->path; c++) {
            if (hidden(c)) continue;
            size_t first = strcspn(c->path, " ");
            char word[64];
            if (before == 0) {
                snprintf(word, sizeof word, "%.*s", (int)first, c->path);
                if (strcmp(word, seen) == 0) continue;
                snprintf(seen, sizeof seen, "%s", word);
                print_matching(word, last);
            } else if (before == 1 && strlen(cli->arguments[0]) == first && strncmp(c->path, cli->arguments[0], first) == 0 && c->path[first]) {
                print_matching(c->path + first + 1, last);
            }
        }
        return CLI_DONE;
    }
    if (last[0] == '-') {
        const struct cli_option *lists[2] = {command->options, cli_global_options};
        for (int i = 0; i < 2; i++)
            for (const struct cli_option *o = lists[i]; o && o->name; o++) {
                char name[64];
                snprintf(name, sizeof name, "--%s", o->name);
                print_matching(name, last);
            }
        return CLI_DONE;
    }
    if (command->arguments && strstr(command->arguments, "TABLE")) complete_tables(cli, last);
    if (strcmp(command->path, "completion") == 0) {
        print_matching("bash", last);
        print_matching("zsh", last);
        print_matching("fish", last);
    }
    return CLI_DONE;
}

int cli_run_completion(struct cli *cli) {
    const char *shell = cli->arguments[0];
    if (strcmp(shell, "bash") == 0)
        printf("_mink() { local IFS=$'\\n'; COMPREPLY=($(mink __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)); }\n"
               "complete -o default -F _mink mink\n");
    else if (strcmp(shell, "zsh") == 0)
        printf("#compdef mink\n_mink() { local -a found; found=(\"${(@f)$(mink __complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"); "
               "compadd -a found; [[ -n $found ]] || _files; }\ncompdef _mink mink\n");
    else if (strcmp(shell, "fish") == 0)
        printf("complete -c mink -a '(mink __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'\n");
    else
        return cli_usage(cli, "unknown shell: %s (known: bash, zsh, fish)", shell);
    return CLI_DONE;
}
