/* SPDX-License-Identifier: PostgreSQL */
/* The value of --listen: PORT, ADDR:PORT or [ADDR]:PORT, where ADDR is a number or localhost. */
#ifndef INBOX_LISTEN_ADDRESS_H
#define INBOX_LISTEN_ADDRESS_H

#include <sys/socket.h>

#define LISTEN_ADDRESS_SIZE 80

struct listen_address
{
	struct sockaddr_storage socket;
	socklen_t size;
};

/* NULL, or what is wrong with it (static storage). A port alone is one of 127.0.0.1. */
const char *listen_address_parse(const char *text, struct listen_address *address);

/* ADDR:PORT as it is bound. */
const char *listen_address_text(const struct listen_address *address,
								char text[LISTEN_ADDRESS_SIZE]);

#endif
