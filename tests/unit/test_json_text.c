/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/json_text.h"

static void assert_refused(const char *text, const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    json_t *json = NULL;

    assert_int_equal(
        cg_json_parse("config.json", text, strlen(text), &json, &error),
        CELLGATE_BAD_FILE);
    assert_null(json);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
}

static void objects_are_parsed(void **state)
{
    json_t *json = NULL;

    (void)state;
    assert_int_equal(cg_json_parse("x", "{\"a\": [1]} junk", 10, &json, NULL),
                     CELLGATE_OK);
    assert_int_equal(json_array_size(json_object_get(json, "a")), 1);
    json_decref(json);
}

static void others_are_not(void **state)
{
    (void)state;
    assert_refused("{\n\"a\": }", "config.json:2:6: ");
    assert_refused("[1]", "config.json is not a JSON object");
    assert_refused("{\"a\": 1, \"a\": 1}", "duplicate object key");
    assert_refused("{\"a\": \"\\u0000\"}", "config.json:1:");
    assert_refused("{\"a\": \"\xff\"}", "config.json:1:");
    assert_refused("{\"a\": 1e999}", "config.json:1:");
    assert_refused("{\"a\": NaN}", "config.json:1:");
    assert_refused("{} {}", "config.json:1:");
    assert_refused("", "config.json:1:0");
}

static void floats_come_back(void **state)
{
    static const float numbers[] = { 0.1f,          1.0f / 3, 1e-42f,
                                     3.4028234e38f, -0.0f,    16777217.0f };

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_t *json = json_pack("{s:f}", "a", (double)numbers[i]), *again;
        char *text = cg_json_write(json);
        float read;

        assert_non_null(text);
        assert_int_equal(cg_json_parse("x", text, strlen(text), &again, NULL),
                         CELLGATE_OK);
        read = (float)json_number_value(json_object_get(again, "a"));
        assert_memory_equal(&read, &numbers[i], sizeof read);
        free(text);
        json_decref(json);
        json_decref(again);
    }
    assert_null(cg_json_write(NULL));
}

static void *no_memory(size_t size)
{
    (void)size;
    return NULL;
}

static void memory_that_is_not_there(void **state)
{
    json_t *json = NULL;
    cellgate_status status;

    (void)state;
    json_set_alloc_funcs(no_memory, free);
    status = cg_json_parse("x", "{}", 2, &json, NULL);
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(status, CELLGATE_NO_MEMORY);
    assert_null(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_parsed),
        cmocka_unit_test(others_are_not),
        cmocka_unit_test(floats_come_back),
        cmocka_unit_test(memory_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
