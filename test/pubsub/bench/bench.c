/* SPDX-License-Identifier: PostgreSQL */
/*
 * bench HOST PORT MESSAGES BYTES PULLERS: how many messages a second the server delivers and has
 * acknowledged. It publishes the messages first, then pulls 1,000 at a time and acknowledges them,
 * on so many connections. The client does no more than it has to, so that the server is measured:
 * it finds the ack ids in the text of the answer and sends them back.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "memory.h"
#include "timer.h"

#define PER_REQUEST 1000

struct puller
{
	CURL *curl;
	struct buf answer;
	struct buf request;
	bool acking;
	bool done;
	size_t held; /* messages in the last answer */
};

struct bench
{
	const char *base;
	CURLM *multi;
	struct curl_slist *headers;
	long messages;
	long acked;
	int pullers;
	struct puller *all;
};

static void
die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static size_t
take(char *bytes, size_t size, size_t count, void *context)
{
	buf_add(context, bytes, size * count);
	return size * count;
}

/* Sets the handle up for a request to the path, with the body in the puller. */
static void
aim(const struct bench *bench, struct puller *puller, const char *method, const char *path)
{
	char url[256];

	snprintf(url, sizeof(url), "%s/%s", bench->base, path);
	puller->answer.len = 0;
	curl_easy_setopt(puller->curl, CURLOPT_URL, url);
	curl_easy_setopt(puller->curl, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(puller->curl, CURLOPT_HTTPHEADER, bench->headers);
	curl_easy_setopt(puller->curl, CURLOPT_POSTFIELDS, puller->request.data);
	curl_easy_setopt(puller->curl, CURLOPT_POSTFIELDSIZE, (long) puller->request.len);
	curl_easy_setopt(puller->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(puller->curl, CURLOPT_WRITEDATA, &puller->answer);
	curl_easy_setopt(puller->curl, CURLOPT_PRIVATE, puller);
}

static void
check(struct puller *puller)
{
	long status = 0;

	curl_easy_getinfo(puller->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		die(status == 0 ? "the server does not answer" : puller->answer.data);
}

static void
request(const struct bench *bench, struct puller *puller, const char *method, const char *path)
{
	aim(bench, puller, method, path);
	if (curl_easy_perform(puller->curl) != CURLE_OK)
		die("cannot reach the server");
	check(puller);
}

static void
set_body(struct puller *puller, const char *text)
{
	puller->request.len = 0;
	buf_text(&puller->request, text);
}

static void
publish(const struct bench *bench, struct puller *puller, int bytes)
{
	char *data = memory_get((size_t) bytes / 3 * 4 + 1);

	memset(data, 'A', (size_t) bytes / 3 * 4);
	set_body(puller, "{}");
	request(bench, puller, "PUT", "topics/bench");
	set_body(puller, "{\"topic\":\"projects/p/topics/bench\",\"ackDeadlineSeconds\":600}");
	request(bench, puller, "PUT", "subscriptions/bench");
	for (long sent = 0; sent < bench->messages; sent += PER_REQUEST)
	{
		set_body(puller, "{\"messages\":[");
		for (int i = 0; i < PER_REQUEST; i++)
			buf_printf(&puller->request,
					   "%s{\"data\":\"%s\",\"attributes\":{\"idempotency_key\":\"key-%ld\"}}",
					   i == 0 ? "" : ",", data, sent + i);
		buf_text(&puller->request, "]}");
		request(bench, puller, "POST", "topics/bench:publish");
	}
	free(data);
}

static void
start_pull(const struct bench *bench, struct puller *puller)
{
	puller->acking = false;
	set_body(puller, "{\"maxMessages\":1000,\"returnImmediately\":true}");
	aim(bench, puller, "POST", "subscriptions/bench:pull");
	curl_multi_add_handle(bench->multi, puller->curl);
}

/* Sends back the ack ids of the answer; false if there is none. */
static bool
start_ack(const struct bench *bench, struct puller *puller)
{
	static const char mark[] = "\"ackId\": ";
	const char *at = puller->answer.data;

	puller->held = 0;
	set_body(puller, "{\"ackIds\":[");
	while ((at = strstr(at, mark)) != NULL)
	{
		const char *end;

		at += sizeof(mark) - 1;
		end = strchr(at + 1, '"') + 1;
		if (puller->held++ > 0)
			buf_text(&puller->request, ",");
		buf_add(&puller->request, at, (size_t) (end - at));
		at = end;
	}
	buf_text(&puller->request, "]}");
	puller->acking = true;
	aim(bench, puller, "POST", "subscriptions/bench:acknowledge");
	if (puller->held > 0)
		curl_multi_add_handle(bench->multi, puller->curl);
	return puller->held > 0;
}

static void
finished(struct bench *bench, struct puller *puller)
{
	check(puller);
	curl_multi_remove_handle(bench->multi, puller->curl);
	if (puller->acking)
	{
		bench->acked += (long) puller->held;
		start_pull(bench, puller);
	}
	else
		puller->done = !start_ack(bench, puller);
}

static bool
all_done(const struct bench *bench)
{
	for (int i = 0; i < bench->pullers; i++)
	{
		if (!bench->all[i].done)
			return false;
	}
	return true;
}

static void
pull_all(struct bench *bench)
{
	int running;
	int left;
	CURLMsg *message;

	for (int i = 0; i < bench->pullers; i++)
		start_pull(bench, &bench->all[i]);
	while (!all_done(bench))
	{
		curl_multi_perform(bench->multi, &running);
		while ((message = curl_multi_info_read(bench->multi, &left)) != NULL)
		{
			struct puller *puller;

			curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &puller);
			finished(bench, puller);
		}
		curl_multi_poll(bench->multi, NULL, 0, 100, NULL);
	}
}

static void
run(struct bench *bench, int bytes)
{
	int64_t start;
	double seconds;

	for (int i = 0; i < bench->pullers; i++)
		bench->all[i].curl = curl_easy_init();
	publish(bench, &bench->all[0], bytes);
	start = timer_now();
	pull_all(bench);
	seconds = (double) (timer_now() - start) / SECOND;
	if (bench->acked != bench->messages)
		die("not every message came");
	printf("%ld messages of %d bytes, %d connections: %.2f s, %.0f messages a second\n",
		   bench->acked, bytes, bench->pullers, seconds, (double) bench->acked / seconds);
	for (int i = 0; i < bench->pullers; i++)
	{
		curl_easy_cleanup(bench->all[i].curl);
		buf_free(&bench->all[i].answer);
		buf_free(&bench->all[i].request);
	}
}

int
main(int argc, char **argv)
{
	struct bench bench = {0};
	char base[128];

	if (argc != 6)
		die("HOST PORT MESSAGES BYTES PULLERS");
	snprintf(base, sizeof(base), "http://%s:%s/v1/projects/p", argv[1], argv[2]);
	bench.base = base;
	/* Requests carry PER_REQUEST messages each. */
	bench.messages = atol(argv[3]) / PER_REQUEST * PER_REQUEST;
	bench.pullers = atoi(argv[5]);
	bench.all = memory_get((size_t) bench.pullers * sizeof(*bench.all));
	curl_global_init(CURL_GLOBAL_DEFAULT);
	bench.multi = curl_multi_init();
	bench.headers = curl_slist_append(NULL, "Content-Type: application/json");
	bench.headers = curl_slist_append(bench.headers, "Expect:");
	run(&bench, atoi(argv[4]));
	curl_slist_free_all(bench.headers);
	curl_multi_cleanup(bench.multi);
	curl_global_cleanup();
	free(bench.all);
	return 0;
}
