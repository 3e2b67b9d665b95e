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

unsigned pc_control(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	if (at[0] == '\0')
		return 0;
	if (at[0] < ' ' || at[0] == 0x7f)
		return 1;
	if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) /* U+0080-009F */
		return 2;
	if (at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) /* U+2028-202E */
		return 3;
	if (at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9) /* U+2066-2069 */
		return 3;
	return 0;
}

const char *pc_shown(char *to, size_t size, const char *text)
{
	size_t n = 0;

	while (*text != '\0' && n < size - 1) {
		unsigned control = pc_control(text);

		to[n++] = control > 0 ? '?' : *text;
		text += control > 0 ? control : 1;
	}
	to[n] = '\0';
	return text;
}
