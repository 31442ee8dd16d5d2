/* SPDX-License-Identifier: PostgreSQL */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fault.h"
#include "history.h"
#include "memory.h"
#include "request.h"
#include "route.h"
#include "server.h"
#include "service.h"

/* Publish requests carry up to 10 MB as base64; what is larger is not worth reading. */
#define MAX_BODY ((size_t) 32 * 1024 * 1024)
#define CONNECTION_MEMORY ((size_t) 256 * 1024)
#define MAX_CONNECTIONS 4096u

struct server
{
	struct service *service;
	struct MHD_Daemon *daemon;
	struct link held; /* suspended requests */
	bool resumed;	  /* one was resumed, which nothing that is polled shows */
};

static struct request *
request_new(struct server *server, struct MHD_Connection *connection, const char *path,
			const char *method)
{
	struct request *request = memory_get(sizeof(*request));

	request->server = server;
	request->service = server->service;
	request->connection = connection;
	request->path = memory_copy(path);
	/* libmicrohttpd keeps the method as long as the request. */
	request->method = method;
	return request;
}

static void
request_done(void *context, struct MHD_Connection *connection, void **state,
			 enum MHD_RequestTerminationCode code)
{
	struct request *request = *state;

	(void) context;
	(void) connection;
	(void) code;
	if (request == NULL)
		return;
	link_remove(&request->held);
	link_remove(&request->waiting);
	timer_cancel(&request->service->timers, &request->delay);
	timer_cancel(&request->service->timers, &request->patience);
	buf_free(&request->body);
	buf_free(&request->answer);
	free(request->path);
	free(request->name);
	free(request);
	*state = NULL;
}

/* Disconnecting a TCP socket this way sends a RST at once, which closing it does not. */
static enum MHD_Result
reset(struct request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct sockaddr unspecified = {.sa_family = AF_UNSPEC};

	connect(info->connect_fd, &unspecified, sizeof(unspecified));
	return MHD_NO;
}

/* Sends the body up to the cut and then gives up, which closes the connection. */
static ssize_t
read_until_cut(void *context, uint64_t position, char *out, size_t room)
{
	struct request *request = context;
	size_t left;

	if (position >= request->effects.cut_at)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	left = request->effects.cut_at - (size_t) position;
	if (left > room)
		left = room;
	memcpy(out, request->answer.data + position, left);
	return (ssize_t) left;
}

static struct MHD_Response *
make_response(struct request *request)
{
	struct buf *answer = &request->answer;
	struct MHD_Response *response;

	if (request->effects.cut && request->effects.cut_at < answer->len)
		return MHD_create_response_from_callback(answer->len, 16384, read_until_cut, request, NULL);
	response = MHD_create_response_from_buffer(answer->len, answer->data, MHD_RESPMEM_MUST_FREE);
	memset(answer, 0, sizeof(*answer));
	return response;
}

/* Faults of the body that leave the response complete. */
static void
spoil_body(struct request *request)
{
	static const char garbage[] = "\x1f\x8b<html>\xff{\"receivedMessages\":[{\"ackId\":}";

	if (request->effects.half)
		request->answer.len /= 2;
	if (request->effects.garbage)
	{
		request->answer.len = 0;
		buf_add(&request->answer, garbage, sizeof(garbage) - 1);
	}
}

static enum MHD_Result
send_answer(struct request *request)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	history_flush(request->service->history);
	if (request->effects.reset)
		return reset(request);
	spoil_body(request);
	response = make_response(request);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, request->content_type);
	if (request->status == 401)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
								"Bearer realm=\"https://accounts.google.com/\"");
	if (request->effects.status != 0 && request->effects.retry_after[0] != '\0')
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER,
								request->effects.retry_after);
	result = MHD_queue_response(request->connection, (unsigned) request->status, response);
	MHD_destroy_response(response);
	return result;
}

static void
resume(struct request *request)
{
	link_remove(&request->held);
	request->suspended = false;
	request->server->resumed = true;
	MHD_resume_connection(request->connection);
}

static void
delay_over(struct timer *timer)
{
	struct request *request = OWNER(timer, struct request, delay);

	request->effects.delay = 0;
	resume(request);
}

void
server_answer(struct request *request)
{
	if (!request->suspended)
		return;
	if (request->effects.delay > 0)
	{
		request->delay.fire = delay_over;
		timer_set(&request->service->timers, &request->delay, timer_now() + request->effects.delay);
	}
	else if (!request->effects.stall)
		resume(request);
}

static bool
has_to_wait(const struct request *request)
{
	return !request->answered || request->effects.delay > 0 || request->effects.stall;
}

static void
hold(struct server *server, struct request *request)
{
	MHD_suspend_connection(request->connection);
	request->suspended = true;
	list_append(&server->held, &request->held);
	if (request->answered)
		server_answer(request);
}

static enum MHD_Result
take_upload(struct request *request, const char *data, size_t *len)
{
	if (request->body.len + *len > MAX_BODY)
		request->too_large = true;
	else
		buf_add(&request->body, data, *len);
	*len = 0;
	return MHD_YES;
}

static enum MHD_Result
handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
	   const char *version, const char *upload, size_t *upload_len, void **state)
{
	struct server *server = context;
	struct request *request = *state;

	(void) version;
	if (request == NULL)
	{
		*state = request_new(server, connection, path, method);
		return MHD_YES;
	}
	if (*upload_len > 0)
		return take_upload(request, upload, upload_len);
	if (!request->routed)
	{
		request->routed = true;
		route_request(request);
		if (has_to_wait(request))
		{
			history_flush(server->service->history);
			hold(server, request);
			return MHD_YES;
		}
	}
	return send_answer(request);
}

static enum MHD_Result
accept_connection(void *context, const struct sockaddr *address, socklen_t len)
{
	struct server *server = context;

	(void) address;
	(void) len;
	return fault_connect(server->service->faults) ? MHD_NO : MHD_YES;
}

static bool
parse_address(const struct server_options *options, struct sockaddr_storage *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *) address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) address;

	memset(address, 0, sizeof(*address));
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t) options->port);
	if (inet_pton(AF_INET, options->host, &v4->sin_addr) == 1)
		return true;
	memset(address, 0, sizeof(*address));
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t) options->port);
	return inet_pton(AF_INET6, options->host, &v6->sin6_addr) == 1;
}

static struct MHD_Daemon *
start_daemon(struct server *server, const struct server_options *options,
			 struct sockaddr_storage *address)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *) options->certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *) options->key},
		{MHD_OPTION_END, 0, NULL},
	};

	if (options->certificate == NULL)
		tls[0].option = MHD_OPTION_END;
	else
		flags |= MHD_USE_TLS;
	if (address->ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	return MHD_start_daemon(
		flags, 0, accept_connection, server, handle, server, MHD_OPTION_SOCK_ADDR,
		(struct sockaddr *) address, MHD_OPTION_NOTIFY_COMPLETED, request_done, NULL,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT,
		MAX_CONNECTIONS, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

struct server *
server_start(struct service *service, const struct server_options *options)
{
	struct server *server = memory_get(sizeof(*server));
	struct sockaddr_storage address;

	server->service = service;
	list_init(&server->held);
	if (!parse_address(options, &address))
		fprintf(stderr, "cannot listen on %s: it is not an IP address\n", options->host);
	else
	{
		server->daemon = start_daemon(server, options, &address);
		if (server->daemon == NULL)
			fprintf(stderr,
					"cannot listen on %s:%d: the port may be taken, or the certificate and key do "
					"not fit\n",
					options->host, options->port);
	}
	if (server->daemon != NULL)
		return server;
	free(server);
	return NULL;
}

int
server_port(const struct server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

int
server_descriptor(const struct server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int
server_timeout(const struct server *server)
{
	MHD_UNSIGNED_LONG_LONG milliseconds;

	if (server->resumed)
		return 0;
	if (MHD_get_timeout(server->daemon, &milliseconds) == MHD_NO)
		return -1;
	return milliseconds > 60000 ? 60000 : (int) milliseconds;
}

void
server_run(struct server *server)
{
	server->resumed = false;
	MHD_run(server->daemon);
}

void
server_stop(struct server *server)
{
	while (!list_empty(&server->held))
	{
		struct request *request = OWNER(server->held.next, struct request, held);

		request->effects.reset = true;
		request->answered = true;
		resume(request);
	}
	MHD_stop_daemon(server->daemon);
	free(server);
}
