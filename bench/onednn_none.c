/* SPDX-License-Identifier: Apache-2.0 */
/* In place of onednn_side.c in a build without oneDNN. */
#include "config.h"

#include "bench/sides.h"

int bench_onednn(struct bench_side *side, const struct bench_data *data,
                 int threads, char *why, size_t size)
{
    (void)side;
    (void)data;
    (void)threads;
    (void)snprintf(why, size, "built without oneDNN");
    return -1;
}

const char *bench_onednn_version(void)
{
    return "missing (built without oneDNN)";
}
