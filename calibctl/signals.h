/*
 * Ctrl-C and SIGTERM as a verb's own business: what was found so far is told, and then the process dies of it.
 */
#ifndef CALIBCTL_SIGNALS_H
#define CALIBCTL_SIGNALS_H

#include <signal.h>

/* The signal that came; 0: none yet. */
extern volatile sig_atomic_t signals_caught;

/* From now on the first SIGINT or SIGTERM is only noted, unless they were ignored when we were started; a second one
 * takes no asking. */
void signals_catch(void);

/* Holds both back until signals_release(); a wait that is to be ended by them unblocks them with *before. */
void signals_hold(sigset_t *before);
void signals_release(const sigset_t *before);

/* Whoever started us is to see that a signal ended it: a shell's loop then ends as well. Comes back where standard
 * output could not be written: the verb's end says so, and that tells more. */
void signals_die(int signal_number);

#endif
