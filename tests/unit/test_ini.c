/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ini.h>

#include "runtime/config/ini.h"

/* What was read, one event a line: "1[section]", "2 key=value". */
typedef struct transcript {
    char text[2048];
    size_t size;
    int refuse_line; /* the event in this line fails */
} transcript;

static cellgate_status refuse_if_told(const transcript *t, int line,
                                      cellgate_error *error)
{
    if (line == t->refuse_line)
        return cellgate_fail(error, CELLGATE_NOT_FOUND, "told to");
    return CELLGATE_OK;
}

static cellgate_status note_section(void *context, const char *name, int line,
                                    cellgate_error *error)
{
    transcript *t = context;

    t->size += (size_t)snprintf(t->text + t->size, sizeof t->text - t->size,
                                "%d[%s]\n", line, name);
    return refuse_if_told(t, line, error);
}

static cellgate_status note_entry(void *context, const char *key,
                                  const char *value, int line,
                                  cellgate_error *error)
{
    transcript *t = context;

    t->size += (size_t)snprintf(t->text + t->size, sizeof t->text - t->size,
                                "%d %s=%s\n", line, key, value);
    return refuse_if_told(t, line, error);
}

static const cg_ini_events events = { note_section, note_entry };

/* From memory of exactly that size, so that reading beyond it is seen. */
static cellgate_status read_bytes(const char *text, size_t size, transcript *t,
                                  cellgate_error *error)
{
    char *exact = malloc(size > 0 ? size : 1);
    cellgate_status status;

    assert_non_null(exact);
    memcpy(exact, text, size);
    status = cg_ini_read("t.ini", exact, size, &events, t, error);
    free(exact);
    return status;
}

static void reads_bytes(const char *text, size_t size, const char *expected)
{
    transcript t = { .size = 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (read_bytes(text, size, &t, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_string_equal(t.text, expected);
}

static void reads(const char *text, const char *expected)
{
    reads_bytes(text, strlen(text), expected);
}

static void refuses_bytes(const char *text, size_t size, const char *expected)
{
    transcript t = { .size = 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(read_bytes(text, size, &t, &error), CELLGATE_BAD_CONFIG);
    assert_string_equal(error.text, expected);
    assert_int_equal(read_bytes(text, size, &t, NULL), CELLGATE_BAD_CONFIG);
}

static void refuses(const char *text, const char *expected)
{
    refuses_bytes(text, strlen(text), expected);
}

static void reads_sections_and_entries(void **state)
{
    (void)state;
    reads("", "");
    reads("\n\n", "");
    reads("[a]\nk = v\n[b c]\nx=y\n", "1[a]\n2 k=v\n3[b c]\n4 x=y\n");
    reads("[a]\n[b]\n", "1[a]\n2[b]\n"); /* also without keys */
    reads("[a]\n[a]\n", "1[a]\n2[a]\n"); /* not for this room to judge */
    reads("[a]\nk=v", "1[a]\n2 k=v\n");  /* no end of line at the end */
    reads("[a]\nk =\n", "1[a]\n2 k=\n");
    reads("[a]\nk = a = b: c # d;e\n", "1[a]\n2 k=a = b: c # d;e\n");
    reads("[a]\nk\t= \tv \t\n", "1[a]\n2 k=v\n");
    reads("[a] \nk = \xC3\xA9\n", "1[a]\n2 k=\xC3\xA9\n");
    reads("[a]\nk = x\"y\"\n", "1[a]\n2 k=x\"y\"\n");
    reads("[a]\nk = \"\n", "1[a]\n2 k=\"\n");
}

static void skips_comments(void **state)
{
    char text[1024] = "# ";

    (void)state;
    reads("# a = b\n; [c]\n[a]\n  # indented ; too\nk = v\n", "3[a]\n5 k=v\n");
    memset(text + 2, 'c', 900); /* of any length */
    strcpy(text + 902, "=1\n[a]\n");
    reads(text, "2[a]\n");
}

static void takes_line_ends_and_marks(void **state)
{
    (void)state;
    reads("[a]\r\nk = v\r\n\r\n", "1[a]\n2 k=v\n");
    reads("\xEF\xBB\xBF[a]\nk = v\n", "1[a]\n2 k=v\n");
    reads("\xEF\xBB\xBF", "");
    refuses("[a]\n\xEF\xBB\xBFk = v\n[",
            "t.ini:3: the section's closing ] is missing");
    refuses("\xFF\xFE[\n", "t.ini:1: this is UTF-16 text; save the file as "
                           "UTF-8");
    refuses("\xFF\xFE", "t.ini:1: this is UTF-16 text; save the file as "
                        "UTF-8");
    refuses("\xFE\xFF[\n", "t.ini:1: this is UTF-16 text; save the file as "
                           "UTF-8");
}

static void refuses_what_is_no_text(void **state)
{
    (void)state;
    refuses_bytes("[a]\nk = v\0w\n", 12,
                  "t.ini:2: [a]: byte 6 of the line is a control character "
                  "(0x00); is this a text file?");
    refuses("[a]\nk = v\rw\n",
            "t.ini:2: [a]: byte 6 of the line is a control character (0x0D); "
            "is this a text file?");
    refuses("# \x7F\n", "t.ini:1: byte 3 of the line is a control character "
                        "(0x7F); is this a text file?");
    refuses("# caf\xE9\n", "t.ini:1: byte 6 of the line is not UTF-8; save "
                           "the file as UTF-8");
}

static void refuses_broken_utf8(void **state)
{
    static const char *const broken[] = { "\x80",
                                          "\xC0\x80",
                                          "\xC1\xBF",
                                          "\xC3",
                                          "\xC3(",
                                          "\xE0\x80\x80",
                                          "\xE2\x82",
                                          "\xED\xA0\x80",
                                          "\xF0\x80\x80\x80",
                                          "\xF4\x90\x80\x80",
                                          "\xF5\x80\x80\x80",
                                          "\xFF" };
    static const char *const whole[] = { "\xC2\x80",        "\xDF\xBF",
                                         "\xE0\xA0\x80",    "\xED\x9F\xBF",
                                         "\xEE\x80\x80",    "\xF0\x90\x80\x80",
                                         "\xF4\x8F\xBF\xBF" };

    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        refuses(broken[i], "t.ini:1: byte 1 of the line is not UTF-8; save "
                           "the file as UTF-8");
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        char text[64], expected[64];

        (void)snprintf(text, sizeof text, "[a]\nk=%s\n", whole[i]);
        (void)snprintf(expected, sizeof expected, "1[a]\n2 k=%s\n", whole[i]);
        reads(text, expected);
    }
}

static void refuses_indented_lines(void **state)
{
    static const char text[] =
        "t.ini:3: [a]: a line must not be indented (only comments may): move "
        "it to the first column";

    (void)state;
    refuses("[a]\nk = v\n  w\n", text);
    refuses("[a]\nk = v\n\tj = 3\n", text);
    refuses("[a]\nk = v\n [b]\n", text);
}

static void refuses_lines_that_would_be_cut(void **state)
{
    char text[512] = "[a]\nk=";
    char expected[512] = "1[a]\n2 k=";

    (void)state;
    memset(text + 6, 'v', 197); /* 199 bytes in all: the longest */
    strcpy(text + 203, "\n");
    memset(expected + 9, 'v', 197);
    strcpy(expected + 206, "\n");
    reads(text, expected);
    strcpy(text + 203, "v\n");
    refuses(text, "t.ini:2: [a]: the line has 200 bytes; at most 199 are "
                  "read");
}

static void refuses_section_names_that_would_be_cut(void **state)
{
    char text[128] = "[";
    char expected[128] = "1[";

    (void)state;
    memset(text + 1, 's', 49);
    strcpy(text + 50, "]\nk=v\n");
    memset(expected + 2, 's', 49);
    strcpy(expected + 51, "]\n2 k=v\n");
    reads(text, expected);
    strcpy(text + 50, "s]\nk=v\n");
    refuses(text, "t.ini:1: the section's name has 50 bytes; at most 49 are "
                  "read");
}

static void refuses_malformed_headers(void **state)
{
    (void)state;
    refuses("[a\nk = v\n", "t.ini:1: the section's closing ] is missing");
    refuses("[]\n", "t.ini:1: the section has no name");
    refuses("[ a ]\n", "t.ini:1: write [a], without blanks inside the "
                       "brackets");
    refuses("[ ]\n", "t.ini:1: the section has no name");
    refuses("[a] k = v\n", "t.ini:1: nothing may follow the section's ]; a "
                           "comment goes on a line of its own");
    refuses("[a]]\n", "t.ini:1: nothing may follow the section's ]; a comment "
                      "goes on a line of its own");
    refuses("[a] ; b\n", "t.ini:1: nothing may follow the section's ]; a "
                         "comment goes on a line of its own");
}

static void refuses_malformed_entries(void **state)
{
    static const char comment[] =
        "t.ini:2: [a] k: a value cannot contain a blank followed by ; since "
        "that begins a comment; put the comment on a line of its own";
    static const char quotes[] =
        "t.ini:2: [a] k: write the value without quotes: they would become "
        "part of it";

    (void)state;
    refuses("[a]\nk\n", "t.ini:2: [a]: expected \"key = value\", \"[section]\","
                        " or a comment that begins with # or ;");
    refuses("[a]\n= v\n", "t.ini:2: [a]: a key is missing before the =");
    refuses("k = v\n", "t.ini:1: k: a key cannot stand before the first "
                       "[section]");
    refuses("[a]\nk: v = w\n", "t.ini:2: [a]: write \"key = value\", with = "
                               "and not with :");
    refuses("[a]\nk: v\n", "t.ini:2: [a]: write \"key = value\", with = and "
                           "not with :");
    refuses("[a]\nk = v ; w\n", comment);
    refuses("[a]\nk = v\t;w\n", comment);
    refuses("[a]\nk = ;\n", comment);
    refuses("[a]\nk = \"v ; w\"\n", comment);
    refuses("[a]\nk = \"v\"\n", quotes);
    refuses("[a]\nk = 'v w'\n", quotes);
    refuses("[a]\nk = \"\"\n", quotes);
    refuses("[a]\nkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk=v\n",
            "t.ini:2: [a]: there is no key of such a length");
}

static void passes_on_what_callbacks_return(void **state)
{
    (void)state;
    for (int line = 1; line <= 2; line++) {
        transcript t = { .refuse_line = line };
        cellgate_error error = CELLGATE_ERROR_INIT;

        assert_int_equal(read_bytes("[a]\nk = v\n[b]\n", 14, &t, &error),
                         CELLGATE_NOT_FOUND);
        assert_string_equal(error.text, "told to");
        assert_null(strstr(t.text, "[b]"));
    }
}

/*
 * Other programs in the process may have changed how inih reads: then a line
 * that it would mangle is an error, and never another value.
 */
static void notices_another_inih(void **state)
{
    static const char text[] =
        "t.ini:2: [a]: the INI library does not read this line as written";
    char *saved = ini_start_comment_prefixes;
    char prefixes[] = "k#;";
    char *saved_inline = ini_inline_comment_prefixes;
    char inline_prefixes[] = "w";

    (void)state;
    ini_start_comment_prefixes = prefixes;
    refuses("[a]\nk = v\n", text);
    refuses("[a]\nk = v\nj = v\n",
            "t.ini:2: [a]: the INI library does not read this line as "
            "written");
    ini_start_comment_prefixes = saved;
    ini_inline_comment_prefixes = inline_prefixes;
    refuses("[a]\nk = v w\n", text);
    ini_inline_comment_prefixes = saved_inline;
    reads("[a]\nk = v w\n", "1[a]\n2 k=v w\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_sections_and_entries),
        cmocka_unit_test(skips_comments),
        cmocka_unit_test(takes_line_ends_and_marks),
        cmocka_unit_test(refuses_what_is_no_text),
        cmocka_unit_test(refuses_broken_utf8),
        cmocka_unit_test(refuses_indented_lines),
        cmocka_unit_test(refuses_lines_that_would_be_cut),
        cmocka_unit_test(refuses_section_names_that_would_be_cut),
        cmocka_unit_test(refuses_malformed_headers),
        cmocka_unit_test(refuses_malformed_entries),
        cmocka_unit_test(passes_on_what_callbacks_return),
        cmocka_unit_test(notices_another_inih),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
