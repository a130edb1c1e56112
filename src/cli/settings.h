// SPDX-License-Identifier: Apache-2.0
// settings.h: the settings of a node (base/config.h reads them).
#ifndef MINK_CLI_SETTINGS_H
#define MINK_CLI_SETTINGS_H
#include "base/config.h"
extern const struct config_option settings_options[];
#endif
