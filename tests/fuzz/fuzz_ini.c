/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration, and the settings of each device in it. */
#include "config.h"

#include "runtime/config/settings.h"
#include "tests/fuzz/target.h"

const char fuzz_target[] = "ini";

/* A key of each type, as a plugin may declare them. */
static const cellgate_key keys[] = {
    { sizeof(cellgate_key), "name", CELLGATE_KEY_TEXT, "none", NULL, 0, 0, "" },
    { sizeof(cellgate_key), "spin", CELLGATE_KEY_BOOLEAN, "no", NULL, 0, 0,
      "" },
    { sizeof(cellgate_key), "threads", CELLGATE_KEY_INTEGER, "0", NULL, 0, 64,
      "" },
    { sizeof(cellgate_key), "max_memory", CELLGATE_KEY_SIZE, "1M", NULL, 0, 0,
      "" },
    { sizeof(cellgate_key), "pause", CELLGATE_KEY_SECONDS, "1 ms", NULL, 0, 0,
      "" },
    { sizeof(cellgate_key), "level", CELLGATE_KEY_CHOICE, "auto",
      "auto|scalar|avx2", 0, 0, "" },
};
static const size_t key_count = sizeof keys / sizeof keys[0];

static void settle(const cg_config *config, const cg_device_section *section)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_settings *settings = NULL;
    const cellgate_status status =
        cg_settings_create(config, section, keys, key_count, &settings, &error);

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (settings != NULL));
    for (size_t i = 0; settings != NULL && i < key_count; i++)
        FUZZ_REQUIRE(cg_settings_value(settings, keys[i].name) != NULL);
    cg_settings_destroy(settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_config *config = NULL;
    const cellgate_status status = cg_config_parse(
        "cellgate.ini", (const char *)data, size, &config, &error);

    fuzz_check_error(status, &error);
    FUZZ_REQUIRE((status == CELLGATE_OK) == (config != NULL));
    for (size_t i = 0; config != NULL && i < config->device_count; i++)
        settle(config, &config->devices[i]);
    cg_config_destroy(config);
    return 0;
}
