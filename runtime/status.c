/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cellgate/cellgate.h"

const char *cellgate_status_text(cellgate_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                         \
    case CELLGATE_##name:                                                      \
        return text;
        CELLGATE_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *cellgate_status_name(cellgate_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                         \
    case CELLGATE_##name:                                                      \
        return #name;
        CELLGATE_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "UNKNOWN";
}

const char *cellgate_version(void)
{
    return PACKAGE_VERSION;
}

const char *cellgate_dtype_name(int32_t dtype)
{
    switch (dtype) {
#define DTYPE_NAME(name, value, text, size)                                    \
    case CELLGATE_##name:                                                      \
        return text;
        CELLGATE_DTYPE_LIST(DTYPE_NAME)
#undef DTYPE_NAME
    default:
        return NULL;
    }
}

const char *cellgate_numeric_name(int32_t numeric)
{
    switch (numeric) {
#define NUMERIC_NAME(name, value, text)                                        \
    case CELLGATE_##name:                                                      \
        return text;
        CELLGATE_NUMERIC_LIST(NUMERIC_NAME)
#undef NUMERIC_NAME
    default:
        return NULL;
    }
}

size_t cellgate_dtype_size(int32_t dtype)
{
    switch (dtype) {
#define DTYPE_SIZE(name, value, text, size)                                    \
    case CELLGATE_##name:                                                      \
        return size;
        CELLGATE_DTYPE_LIST(DTYPE_SIZE)
#undef DTYPE_SIZE
    default:
        return 0;
    }
}
