/* SPDX-License-Identifier: PostgreSQL */
#include "timestamp.h"

#include <stdio.h>
#include <time.h>

#define FRACTION_DIGITS_MAX 9

/* The number in "digits" decimal digits, which "at" is moved behind; or -1. */
static int
read_digits(const char **at, int digits)
{
	int number = 0;

	for (; digits > 0; digits--, (*at)++)
	{
		if (**at < '0' || **at > '9')
		{
			return -1;
		}
		number = number * 10 + (**at - '0');
	}
	return number;
}

/* A number in [low, high] followed by "after". */
static bool
read_part(const char **at, int digits, int low, int high, char after, int *number)
{
	*number = read_digits(at, digits);
	if (*number < low || *number > high || **at != after)
	{
		return false;
	}
	(*at)++;
	return true;
}

static bool
is_leap_year(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days since 1970-01-01, or false for a day the month does not have. */
static bool
days_since_epoch(int year, int month, int day, int64_t *days)
{
	static const int before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
	int leap = is_leap_year(year) ? 1 : 0;
	int length = before_month[month] - before_month[month - 1] + (month == 2 ? leap : 0);
	int past = year - 1;

	*days = past * 365LL + past / 4 - past / 100 + past / 400 - 719162;
	*days += before_month[month - 1] + (month > 2 ? leap : 0) + day - 1;
	return day <= length;
}

/* ".5" as microseconds, with "at" moved behind it; 0 without a fraction. */
static bool
read_fraction(const char **at, int *microseconds)
{
	int digits = 0;

	*microseconds = 0;
	if (**at != '.')
	{
		return true;
	}
	for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, digits++)
	{
		if (digits < 6)
		{
			*microseconds = *microseconds * 10 + (**at - '0');
		}
	}
	for (int missing = digits; missing < 6; missing++)
	{
		*microseconds *= 10;
	}
	return digits > 0 && digits <= FRACTION_DIGITS_MAX;
}

bool
timestamp_parse(const char *text, int64_t *microseconds)
{
	int year;
	int month;
	int day;
	int hour;
	int minute;
	int second;
	int fraction;
	int64_t days;

	if (!read_part(&text, 4, 1, 9999, '-', &year) || !read_part(&text, 2, 1, 12, '-', &month) ||
		!read_part(&text, 2, 1, 31, 'T', &day) || !read_part(&text, 2, 0, 23, ':', &hour) ||
		!read_part(&text, 2, 0, 59, ':', &minute))
	{
		return false;
	}
	second = read_digits(&text, 2);
	if (second < 0 || second > 59 || !read_fraction(&text, &fraction) || text[0] != 'Z' ||
		text[1] != '\0' || !days_since_epoch(year, month, day, &days))
	{
		return false;
	}
	*microseconds = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000000 + fraction;
	return true;
}

const char *
timestamp_format(int64_t microseconds, char text[TIMESTAMP_SIZE])
{
	struct tm parts;
	time_t seconds = (time_t) (microseconds / 1000000);
	int64_t fraction = microseconds % 1000000;

	if (microseconds == INT64_MIN)
	{
		return NULL;
	}
	if (fraction < 0)
	{
		fraction += 1000000;
		seconds--;
	}
	gmtime_r(&seconds, &parts);
	snprintf(text, TIMESTAMP_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", parts.tm_year + 1900,
			 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
			 (int) fraction);
	return text;
}
