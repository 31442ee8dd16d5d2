/* SPDX-License-Identifier: PostgreSQL */
/*
 * What to do where there is no token.
 */
#ifndef INBOX_REMEDY_H
#define INBOX_REMEDY_H

#include "credential.h"

enum remedy_cause
{
	REMEDY_NOT_REACHED,		 /* no answer came, or from none that is trusted */
	REMEDY_PASSING,			 /* the server is in trouble */
	REMEDY_NO_SUBJECT,		 /* an external account's own token is not there */
	REMEDY_REFUSED,			 /* the credential itself */
	REMEDY_NOT_IMPERSONATED, /* it may not be another one */
};

/* For people. */
const char *remedy_of(enum credential_kind kind, enum remedy_cause cause);

#endif
