/* SPDX-License-Identifier: PostgreSQL */
/* What --check writes, for people and for machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "check_report.h"
#include "memory.h"

struct written
{
	struct check_report report;
	char *text;
	size_t size;
	FILE *out;
};

static void
begin(struct written *written, bool json)
{
	*written = (struct written){0};
	written->out = open_memstream(&written->text, &written->size);
	check_report_begin(&written->report, written->out, json);
	check_report_group(&written->report, "Database");
}

static int
end(struct written *written)
{
	int status = check_report_end(&written->report);

	fclose(written->out);
	return status;
}

static void
one_line_a_fact(void **state)
{
	struct written written;

	(void) state;
	begin(&written, false);
	check_report_ok(&written.report, "encoding", memory_copy_text("UTF8"));
	check_report_note(&written.report, "standbys", memory_copy_text("none"));
	check_report_problem(&written.report, "handler", memory_copy_text("f does not exist"),
						 memory_copy_text("create it"));
	check_report_problem(&written.report, "source", memory_copy_text("halted"), NULL);
	assert_int_equal(end(&written), 2);
	assert_string_equal(written.text,
						"Database\n"
						"  \u2713 encoding             UTF8\n"
						"  \u00b7 standbys             none\n"
						"  \u2717 handler              f does not exist \u2192 create it\n"
						"  \u2717 source               halted\n"
						"2 problems\n");
	free(written.text);
}

static void
status_and_count(void **state)
{
	struct written written;

	(void) state;
	begin(&written, false);
	check_report_note(&written.report, "standbys", memory_copy_text("none"));
	assert_int_equal(end(&written), 0);
	assert_non_null(strstr(written.text, "\nno problems\n"));
	free(written.text);

	begin(&written, false);
	check_report_problem(&written.report, "topic", memory_copy_text("deleted"), NULL);
	assert_int_equal(end(&written), 2);
	assert_non_null(strstr(written.text, "\n1 problem\n"));
	free(written.text);
}

/* What a server says must not look like a fact, or move the cursor of a terminal. */
static void
nothing_forges_a_line(void **state)
{
	struct written written;

	(void) state;
	begin(&written, false);
	check_report_problem(&written.report, "database",
						 memory_copy_text("refused\n  \u2713 handler    f\x1b[2K\r\n"),
						 memory_copy_text("look\n"));
	assert_int_equal(end(&written), 2);
	assert_string_equal(written.text,
						"Database\n  \u2717 database             refused \u2713 handler f [2K "
						"\u2192 look\n1 problem\n");
	free(written.text);
}

static const char *
text_of(struct json_object *fact, const char *name)
{
	struct json_object *member;

	assert_true(json_object_object_get_ex(fact, name, &member));
	return json_object_get_string(member);
}

static void
one_document_for_machines(void **state)
{
	struct written written;
	struct json_object *document;
	struct json_object *facts;
	struct json_object *fact;

	(void) state;
	begin(&written, true);
	check_report_ok(&written.report, "exactly-once", memory_copy_text("off"));
	check_report_note(&written.report, "standbys", memory_copy_text("none"));
	check_report_problem(&written.report, "ack deadline", memory_copy_text("\"1\"\n s"),
						 memory_copy_text("raise it"));
	assert_int_equal(end(&written), 2);
	document = json_tokener_parse(written.text);
	assert_string_equal(text_of(document, "version"), INBOX_VERSION);
	assert_string_equal(text_of(document, "problems"), "1");
	assert_true(json_object_object_get_ex(document, "facts", &facts));
	assert_int_equal(json_object_array_length(facts), 3);
	fact = json_object_array_get_idx(facts, 0);
	assert_string_equal(text_of(fact, "about"), "Database");
	assert_string_equal(text_of(fact, "name"), "exactly_once");
	assert_string_equal(text_of(fact, "ok"), "true");
	assert_null(text_of(fact, "remedy"));
	assert_null(text_of(json_object_array_get_idx(facts, 1), "ok"));
	fact = json_object_array_get_idx(facts, 2);
	assert_string_equal(text_of(fact, "name"), "ack_deadline");
	assert_string_equal(text_of(fact, "ok"), "false");
	assert_string_equal(text_of(fact, "value"), "\"1\" s");
	assert_string_equal(text_of(fact, "remedy"), "raise it");
	json_object_put(document);
	free(written.text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_a_fact),
		cmocka_unit_test(status_and_count),
		cmocka_unit_test(nothing_forges_a_line),
		cmocka_unit_test(one_document_for_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
