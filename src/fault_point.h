/* SPDX-License-Identifier: PostgreSQL */
/*
 * Points at which a torture run kills, stops or fails a backend. They are nothing unless the
 * extension is built with INBOX_FAULT_POINTS, as test/torture does.
 *
 * FAULT_POINT raises an error that is nobody's fault; FAULT_POINT_ONLY stands where none may be
 * raised.
 */
#ifndef INBOX_FAULT_POINT_H
#define INBOX_FAULT_POINT_H

#ifdef INBOX_FAULT_POINTS

#include "../test/torture/fault_point.h"

#define FAULT_POINT(name)                                                                    \
	do                                                                                       \
	{                                                                                        \
		if (fault_point_pass(name))                                                          \
			ereport(ERROR, (errcode(ERRCODE_IO_ERROR), errmsg("fault point \"%s\"", name))); \
	} while (0)
#define FAULT_POINT_ONLY(name) ((void) fault_point_pass(name))

#else

#define FAULT_POINT(name) ((void) 0)
#define FAULT_POINT_ONLY(name) ((void) 0)

#endif

#endif
