/*
 * What calibrd itself says of its state, for status. That it is not running is no fault.
 */
#ifndef CALIBCTL_STATUS_CALIBRD_H
#define CALIBCTL_STATUS_CALIBRD_H

#include <jansson.h>
#include <stdbool.h>

#include "calibctl/client.h"

struct status_calibrd {
	int code;                /* 0 the view holds; else as client_open() and client_view() */
	struct pc_why why;       /* where it is not 0 */
	struct client_view view; /* as it is now */
};

void status_calibrd_look(struct status_calibrd *out);

/* True with why if it needs attention: it failed, or does not answer. */
bool status_calibrd_worries(const struct status_calibrd *calibrd, struct pc_why *why);

void status_calibrd_print(const struct status_calibrd *calibrd);
json_t *status_calibrd_json(const struct status_calibrd *calibrd);

#endif
