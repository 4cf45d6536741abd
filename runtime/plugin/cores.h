/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many threads this process can keep busy on the host's cores.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_CORES_H
#define CELLGATE_RUNTIME_PLUGIN_CORES_H

#include <stdint.h>

/*
 * The cores that the scheduler lets the process use (its affinity), less where
 * a control group's quota (cpu.max, version 2, of its group or any above)
 * grants less time than that. At least 1.
 */
uint32_t cg_cores_available(void);

/*
 * Cores granted by a cpu.max line, "QUOTA PERIOD" in microseconds, rounded up;
 * 0 for "max" and for anything that is not such a line.
 */
uint32_t cg_cores_of_quota(const char *line);

#endif
