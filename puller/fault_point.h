/* SPDX-License-Identifier: PostgreSQL */
/*
 * Points at which a torture run kills, stops or fails the puller. They are nothing unless it is
 * built with INBOX_FAULT_POINTS, as test/torture does.
 *
 * FAULT_POINT is true where what stands there is to fail. FAULT_CUT breaks a socket, FAULT_URL
 * makes a URL one that nobody listens at.
 */
#ifndef INBOX_FAULT_POINT_H
#define INBOX_FAULT_POINT_H

#ifdef INBOX_FAULT_POINTS

#include <sys/socket.h>

#include "../test/torture/fault_point.h"

#define FAULT_POINT(name) fault_point_pass(name)
#define FAULT_CUT(name, socket) \
	(fault_point_pass(name) ? (void) shutdown(socket, SHUT_RDWR) : (void) 0)
#define FAULT_URL(name, url) \
	(fault_point_pass(name) ? (void) strcpy(url, "http://127.0.0.1:1/") : (void) 0)

#else

#define FAULT_POINT(name) false
#define FAULT_CUT(name, socket) ((void) 0)
#define FAULT_URL(name, url) ((void) 0)

#endif

#endif
