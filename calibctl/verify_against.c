/* Another library's memset, loaded and tried in the measuring child; see verify_against.h. */
#include "calibctl/verify_against.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "calibrd/trial.h"

static void *(*found)(void *, int, size_t);

static void zero(void *dst, size_t len)
{
	found(dst, 0, len);
}

static const struct pc_kernel against = {.name = "against", .body = zero, .clear = zero};

/* Any library has libc's memset among its dependencies, where dlsym() looks as well. */
static bool is_own(void *handle, void *symbol)
{
	struct link_map *library = NULL, *owner = NULL;
	Dl_info info;

	return dlinfo(handle, RTLD_DI_LINKMAP, &library) == 0 &&
	       dladdr1(symbol, &info, (void **)&owner, RTLD_DL_LINKMAP) != 0 && owner == library;
}

int against_load(const struct pc_kernel **out, const char *library, struct pc_why *why)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *symbol;

	if (handle == NULL) {
		const char *reason = dlerror();

		return pc_why(why, -ELIBACC, "--against: cannot load it: %s",
		              reason != NULL ? reason : "out of memory");
	}
	symbol = dlsym(handle, "memset");
	if (symbol == NULL || !is_own(handle, symbol))
		return pc_why(why, -ENOSYS, "--against %s: it has no memset of its own", library);
	/* ISO C has no cast from an object's pointer to a function's; POSIX promises that they look alike. */
	memcpy(&found, &symbol, sizeof(found));
	*out = &against;
	return 0;
}

int against_try(const struct pc_kernel *kernel, const char *library, struct pc_why *why)
{
	int r = trial_run(kernel, TRIAL_DEADLINE_MS);

	switch (r) {
	case TRIAL_PASSED:
		return 0;
	case TRIAL_FAULTED:
		return pc_why(why, -EBADF, "--against %s: its memset is killed by a signal", library);
	case TRIAL_HUNG:
		return pc_why(why, -EBADF, "--against %s: its memset does not come to an end", library);
	case TRIAL_WRONG:
		return pc_why(why, -EBADF,
		              "--against %s: its memset leaves bytes that are not zero, or writes beyond its end",
		              library);
	default:
		return pc_why(why, r, "--against %s: cannot try its memset: %s", library, strerror(-r));
	}
}
