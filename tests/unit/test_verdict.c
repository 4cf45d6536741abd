/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/plugin/verdict.h"
#include "tests/unit/fail_allocation.h"

static void check_clean(const char *text, const char *expected)
{
    char *clean = cg_verdict_clean(text);

    assert_non_null(clean);
    assert_string_equal(clean, expected);
    free(clean);
}

static void test_clean(void **state)
{
    char *endless = malloc(CG_VERDICT_TEXT_MAX + 100);
    char *clean;

    (void)state;
    check_clean("", "");
    check_clean("plain", "plain");
    check_clean("two\nlines\tand", "two lines and");
    check_clean("\033[31mred\r\177", "?[31mred??");
    check_clean("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80",
                "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
    check_clean("\xFF\xC3", "??");           /* never a start; cut off */
    check_clean("\xC0\x80", "??");           /* overlong */
    check_clean("\xE0\x80\x80", "???");      /* overlong */
    check_clean("\xED\xA0\x80", "???");      /* a surrogate */
    check_clean("\xF4\x90\x80\x80", "????"); /* beyond Unicode */
    check_clean("\xC2\x85", "??");           /* a control of the second set */
    assert_non_null(endless);
    memset(endless, 'x', CG_VERDICT_TEXT_MAX + 99);
    endless[CG_VERDICT_TEXT_MAX + 99] = '\0';
    clean = cg_verdict_clean(endless);
    assert_int_equal(strlen(clean), CG_VERDICT_TEXT_MAX);
    free(clean);
    free(endless);
}

static const cellgate_key keys[] = {
    { sizeof(cellgate_key), "mode", CELLGATE_KEY_CHOICE, "a", "a|b", 0, 0,
      "help" },
    { sizeof(cellgate_key), "size", CELLGATE_KEY_SIZE, "1024", NULL, INT64_MIN,
      INT64_MAX, "" },
};

static const char *const watched[] = { "/etc/driver", "$VARIABLE", NULL };
static const char *const variants[] = { "fast", "t*", NULL };

static cg_verdict *make_verdict(void)
{
    const cellgate_plugin table = { .abi_version = 7,
                                    .name = "name",
                                    .version = "1.2",
                                    .build = "b",
                                    .keys = keys,
                                    .key_count = 2,
                                    .watched = watched,
                                    .variants = variants };
    cg_verdict *verdict = cg_verdict_create();

    if (verdict == NULL)
        return NULL;
    if (!cg_verdict_identify(verdict, &table) ||
        (verdict->devices = calloc(1, sizeof *verdict->devices)) == NULL) {
        cg_verdict_destroy(verdict);
        return NULL;
    }
    verdict->device_count = 1;
    strcpy(verdict->devices[0].name, "Name \"quoted\" \\");
    strcpy(verdict->devices[0].identity, "id");
    memset(verdict->devices[0].driver, 'd',
           sizeof verdict->devices[0].driver - 1);
    verdict->devices[0].kind = 2;
    verdict->devices[0].flags = UINT32_MAX;
    verdict->devices[0].memory = UINT64_MAX;
    verdict->devices[0].queue_depth = UINT32_MAX;
    cg_verdict_set(verdict, CELLGATE_OK, "reason %d", 1);
    return verdict;
}

static void test_round_trip(void **state)
{
    cg_verdict *verdict = make_verdict();
    json_t *json = cg_verdict_to_json(verdict);
    cg_verdict *back = cg_verdict_from_json(json);

    (void)state;
    assert_non_null(back);
    assert_int_equal(back->status, CELLGATE_OK);
    assert_string_equal(back->reason, "reason 1");
    assert_string_equal(back->name, "name");
    assert_string_equal(back->version, "1.2");
    assert_string_equal(back->build, "b");
    assert_int_equal(back->abi, 7);
    assert_int_equal(back->key_count, 2);
    assert_int_equal(back->keys[0].type, CELLGATE_KEY_CHOICE);
    assert_string_equal(back->keys[0].choices, "a|b");
    assert_string_equal(back->keys[0].default_text, "a");
    assert_null(back->keys[1].choices);
    assert_true(back->keys[1].minimum == INT64_MIN);
    assert_true(back->keys[1].maximum == INT64_MAX);
    assert_int_equal(back->watched_count, 2);
    assert_string_equal(back->watched[1], "$VARIABLE");
    assert_int_equal(back->variant_count, 2);
    assert_string_equal(back->variants[1], "t*");
    assert_int_equal(back->device_count, 1);
    verdict->devices[0].struct_size = sizeof verdict->devices[0];
    assert_memory_equal(&back->devices[0], &verdict->devices[0],
                        sizeof back->devices[0]);
    cg_verdict_destroy(back);
    json_decref(json);
    cg_verdict_destroy(verdict);
}

/* A change of one member must be noticed. */
static void check_refused(const char *member, json_t *value)
{
    cg_verdict *verdict = make_verdict();
    json_t *json = cg_verdict_to_json(verdict);

    if (value != NULL)
        assert_int_equal(json_object_set_new(json, member, value), 0);
    else
        assert_int_equal(json_object_del(json, member), 0);
    assert_null(cg_verdict_from_json(json));
    json_decref(json);
    cg_verdict_destroy(verdict);
}

static json_t *many(json_t *item, size_t count)
{
    json_t *array = json_array();

    while (count-- > 0)
        (void)json_array_append(array, item);
    json_decref(item);
    return array;
}

static void test_refused(void **state)
{
    static const char *const members[] = { "status",  "reason",  "name",
                                           "version", "build",   "abi",
                                           "keys",    "watched", "variants",
                                           "devices" };
    cg_verdict *verdict = make_verdict();
    json_t *json = cg_verdict_to_json(verdict);
    json_t *device = json_array_get(json_object_get(json, "devices"), 0);
    char endless[200];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof members / sizeof members[0]; i++) {
        check_refused(members[i], NULL);
        check_refused(members[i], json_true());
    }
    check_refused("status", json_integer(-1));
    check_refused("status", json_integer(1000));
    check_refused("keys", json_pack("[{s:s}]", "name", "x"));
    check_refused("watched", json_pack("[i]", 3));
    check_refused("variants", json_pack("[i]", 3));
    check_refused("variants",
                  many(json_string("x"), CG_VERDICT_VARIANTS_MAX + 1));
    check_refused("devices", json_pack("[{s:s}]", "name", "x"));
    check_refused("devices",
                  many(json_incref(device), CG_VERDICT_DEVICES_MAX + 1));
    check_refused("watched",
                  many(json_string("/x"), CG_VERDICT_WATCHED_MAX + 1));
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    assert_int_equal(json_object_set_new(device, "name", json_string(endless)),
                     0);
    assert_null(cg_verdict_from_json(json));
    assert_null(cg_verdict_from_json(NULL));
    json_decref(json);
    cg_verdict_destroy(verdict);
    cg_verdict_destroy(NULL);
}

static cellgate_status make_and_read(void *context)
{
    cg_verdict *verdict = make_verdict();
    cg_verdict *back = NULL;

    if (verdict != NULL)
        back = cg_verdict_from_json(context);
    cg_verdict_destroy(verdict);
    if (back == NULL)
        return CELLGATE_NO_MEMORY;
    cg_verdict_destroy(back);
    return CELLGATE_OK;
}

static void test_no_memory(void **state)
{
    cg_verdict *verdict = make_verdict();
    json_t *json = cg_verdict_to_json(verdict);
    size_t nth = 1;
    bool failed = true;

    (void)state;
    /* Only the text of a reason may be lost without a word. */
    while (failed) {
        cellgate_status status;
        fail_allocation_begin(nth++);
        status = make_and_read(json);
        failed = fail_allocation_end();
        assert_int_equal(fail_allocation_live(), 0);
        assert_true(status == CELLGATE_NO_MEMORY || status == CELLGATE_OK);
        if (!failed)
            assert_int_equal(status, CELLGATE_OK);
    }
    assert_in_range(nth, 30, 100);
    json_decref(json);
    cg_verdict_destroy(verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
