/* SPDX-License-Identifier: PostgreSQL */
#include "listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_SIZE 64

/* -1: not a port. 0 stands for one that is free. */
static int
parse_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 5 || text[digits] != '\0')
	{
		return -1;
	}
	return strtol(text, NULL, 10) <= 65535 ? (int) strtol(text, NULL, 10) : -1;
}

/* Cuts the value into host and port; false when it has neither form. */
static const char *
split(const char *text, char host[HOST_SIZE])
{
	const char *colon = strrchr(text, ':');
	size_t size = colon != NULL ? (size_t) (colon - text) : 0;
	size_t skip = 0;

	snprintf(host, HOST_SIZE, "127.0.0.1");
	if (colon == NULL)
	{
		return text;
	}
	if (size >= 2 && text[0] == '[' && text[size - 1] == ']')
	{
		skip = 1;
		size -= 2;
	}
	if (size > 0 && size < HOST_SIZE)
	{
		memcpy(host, text + skip, size);
		host[size] = '\0';
	}
	return size > 0 && size < HOST_SIZE && (skip == 1 || strchr(text, ':') == colon) ? colon + 1
																					 : NULL;
}

static void
set_address(struct listen_address *address, const void *socket, socklen_t size)
{
	*address = (struct listen_address){.size = size};
	memcpy(&address->socket, socket, size);
}

const char *
listen_address_parse(const char *text, struct listen_address *address)
{
	struct sockaddr_in four = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	char host[HOST_SIZE];
	const char *rest = split(text, host);
	int port = rest != NULL ? parse_port(rest) : -1;

	if (rest == NULL)
	{
		return "it is not ADDR:PORT";
	}
	if (port < 0)
	{
		return "its port is not a number from 0 to 65535";
	}
	if (strcmp(host, "localhost") == 0)
	{
		snprintf(host, sizeof(host), "127.0.0.1");
	}
	four.sin_port = htons((uint16_t) port);
	six.sin6_port = htons((uint16_t) port);
	if (inet_pton(AF_INET, host, &four.sin_addr) == 1)
	{
		set_address(address, &four, sizeof(four));
		return NULL;
	}
	if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1)
	{
		set_address(address, &six, sizeof(six));
		return NULL;
	}
	/* A name would have to be looked up, and names change. */
	return "its address is not a number such as 127.0.0.1 or [::1], nor localhost";
}

const char *
listen_address_text(const struct listen_address *address, char text[LISTEN_ADDRESS_SIZE])
{
	const struct sockaddr_in *four = (const struct sockaddr_in *) &address->socket;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) &address->socket;
	bool is_six = address->socket.ss_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(address->socket.ss_family,
			  is_six ? (const void *) &six->sin6_addr : (const void *) &four->sin_addr, host,
			  sizeof(host));
	snprintf(text, LISTEN_ADDRESS_SIZE, is_six ? "[%s]:%d" : "%s:%d", host,
			 ntohs(is_six ? six->sin6_port : four->sin_port));
	return text;
}
