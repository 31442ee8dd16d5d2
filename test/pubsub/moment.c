/* SPDX-License-Identifier: PostgreSQL */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "moment.h"
#include "timer.h"

int64_t
moment_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

void
moment_format(int64_t moment, char out[MOMENT_SIZE])
{
	time_t seconds = moment / SECOND;
	int fraction = (int) (moment % SECOND);
	struct tm tm;
	size_t len;

	gmtime_r(&seconds, &tm);
	len = strftime(out, MOMENT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	if (fraction % 1000000 == 0)
		snprintf(out + len, MOMENT_SIZE - len, ".%03dZ", fraction / 1000000);
	else
		snprintf(out + len, MOMENT_SIZE - len, ".%09dZ", fraction);
}

/* The fraction and the zone; the seconds before them are done. */
static bool
parse_rest(const char *text, int64_t *moment)
{
	int64_t unit = SECOND / 10;
	int hours;
	int minutes;
	int len = 0;

	if (*text == '.')
	{
		for (text++; isdigit((unsigned char) *text); text++, unit /= 10)
			*moment += (*text - '0') * unit;
	}
	if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
		return true;
	if ((*text != '+' && *text != '-') ||
		sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &len) != 2 || text[1 + len] != '\0')
		return false;
	*moment -= (*text == '+' ? 1 : -1) * (hours * 3600 + minutes * 60) * SECOND;
	return true;
}

bool
moment_parse(const char *text, int64_t *moment)
{
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	/* Nanoseconds go no further than April 2262. */
	if (rest == NULL || tm.tm_year < 70 || tm.tm_year > 361)
		return false;
	*moment = (int64_t) timegm(&tm) * SECOND;
	return *rest != '\0' && parse_rest(rest, moment);
}
