/* Errors in words; see why.h. */
#include "libpolicy/why.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void pc_why_say(struct pc_why *why, const char *format, ...)
{
	va_list arguments;

	if (why == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(why->text, sizeof(why->text), format, arguments);
	va_end(arguments);
}
