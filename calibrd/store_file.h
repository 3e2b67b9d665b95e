/*
 * The database as a file: where it is, whose it is, who writes it. Knows the first 100 bytes of SQLite's format
 * (sqlite.org/fileformat2.html, 1.3) and not one table.
 */
#ifndef CALIBRD_STORE_FILE_H
#define CALIBRD_STORE_FILE_H

#include "libpolicy/why.h"
#include <stdbool.h>

/* With ".damaged-N-journal" behind it still within SQLite's own limit of 512. */
enum { STORE_PATH = 481 };

/* The path with symbolic links resolved, so that every name of one file leads to one lock. With `make` a missing
 * folder is made, its last component alone. */
int store_file_locate(char out[STORE_PATH], const char *path, int make, struct pc_why *why);

/* Takes the writer's lock, flock() on PATH.lock: the kernel drops it with the process. It is not on the database, since
 * closing any descriptor of that would drop SQLite's own locks, and since a damaged database is renamed under it.
 * The descriptor, to be closed, or -EBUSY with the holder's process id in why. */
int store_file_lock(const char *path, struct pc_why *why);

/* True if a writer has been here: the lock's file is made with the database and never removed. */
bool store_file_has_lock(const char *path);

/* True if SQLite's journal lies beside it. */
bool store_file_has_journal(const char *path);

/* -EROFS or -EACCES where the folder or an existing file can't be written. */
int store_file_writable(const char *path, struct pc_why *why);

/* -ENOSPC or -EDQUOT where what a calibration leaves would find no room in the folder. Leaves nothing there. */
int store_file_room(const char *path, struct pc_why *why);

/* 0 ours, 1 absent or without any table: begin anew, 2 no SQLite header or a broken one; -EMEDIUMTYPE another
 * program's, -EPROTONOSUPPORT a schema above `newest`. Reads only. *schema is set for 0. */
int store_file_identify(const char *path, unsigned newest, unsigned *schema, struct pc_why *why);

/* An empty file that everyone may read, if there is none. */
int store_file_create(const char *path, struct pc_why *why);

/* Renames it, and what SQLite keeps beside it, to PATH.damaged-N, the first that is free. Under the writer's lock. */
int store_file_set_aside(const char *path, char renamed[512], struct pc_why *why);

/* Removes it and what SQLite keeps beside it, under the writer's lock, whose file stays. An absent one is removed
 * already. */
int store_file_remove(const char *path, struct pc_why *why);

#endif
