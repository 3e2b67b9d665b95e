/* A kernel's uevent as it comes from the socket: never read beyond its end, and told of only if it says what and where.
 */
#include <stdlib.h>
#include <string.h>

#include "calibrd/watch_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
	if (!right)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum watch_cause cause = WATCH_DAILY;

	if (!watch_uevent_parse((const char *)data, size, &cause)) {
		require(cause == WATCH_DAILY);
		return 0;
	}
	require(cause == WATCH_CPUS || cause == WATCH_POWER);
	require(memmem(data, size, "ACTION=", 7) != NULL && memmem(data, size, "SUBSYSTEM=", 10) != NULL);
	require(memmem(data, size, cause == WATCH_CPUS ? "=cpu" : "=power_supply", cause == WATCH_CPUS ? 5 : 14) !=
	        NULL);
	return 0;
}
