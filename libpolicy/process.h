/*
 * The policy of the whole process: loaded before main, replaced by pageclear_reload, never freed.
 */
#ifndef PC_PROCESS_H
#define PC_PROCESS_H

#include "libpolicy/words.h"

/* Zero-initialised, so that a call before the constructor finds libc. */
extern struct pc_words pc_process_words;

#endif
