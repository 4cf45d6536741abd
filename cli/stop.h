/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long run that is interrupted ends between two pieces, so that it can take
 * back what it has begun to write. A second signal, later than half a second
 * after the first, ends it at once.
 */
#ifndef CELLGATE_CLI_STOP_H
#define CELLGATE_CLI_STOP_H

/* Catches SIGINT, SIGTERM and SIGHUP, unless they are ignored. */
void cli_stop_begin(void);
/* The signal that came, or 0. */
int cli_stop_signal(void);
/* Ends the process by the signal that came, as if it had never been caught;
   returns if none came. */
void cli_stop_raise(void);

#endif
