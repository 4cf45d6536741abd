/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 files in every form that h5py writes, and the same files damaged. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/fail_allocation.h"
#include "tests/unit/h5_questions.h"
#include "tests/unit/scratch_folder.h"

static h5_questions questions;

static int read_questions(void **state)
{
    (void)state;
    questions = h5_questions_read();
    return 0;
}

static int finish_questions(void **state)
{
    (void)state;
    h5_questions_finish(&questions);
    return 0;
}

/* ---- Sound files --------------------------------------------------------- */

static cg_h5 *open_image(const char *name, const unsigned char *image,
                         size_t size)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5 *h5 = NULL;

    if (cg_h5_open(image, size, "the file", &h5, &error) != CELLGATE_OK)
        fail_msg("%s: %s", name, error.text);
    return h5;
}

static void check_answer(const h5_question *question, cg_h5 *h5)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cellgate_status status = h5_question_ask(h5, question, true, &error);
    const bool refused = strcmp(question->kind, "refused") == 0;
    const char *part = refused ? question->parts[1] : "";

    if (strcmp(question->kind, "absent") == 0)
        assert_int_equal(status, CELLGATE_NOT_FOUND);
    else if (refused ? status == CELLGATE_OK || !strstr(error.text, part) ||
                           !strstr(error.text, question->path)
                     : status != CELLGATE_OK)
        fail_msg("%s: %s %s: %s, %s", question->file, question->kind,
                 question->path, cellgate_status_name(status), error.text);
}

/* Each question on a reader of its own, and all on one. */
static void answers_are_what_h5py_wrote(void **state)
{
    const char *name = "";
    unsigned char *image = NULL;
    cg_h5 *h5 = NULL;
    size_t size = 0;

    (void)state;
    for (size_t i = 0; i < questions.count; i++) {
        const h5_question *question = &questions.items[i];
        cg_h5 *fresh;

        if (strcmp(name, question->file) != 0) {
            name = question->file;
            cg_h5_close(h5);
            free(image);
            image = h5_fixture(name, &size);
            h5 = open_image(name, image, size);
        }
        check_answer(question, h5);
        fresh = open_image(name, image, size);
        check_answer(question, fresh);
        cg_h5_close(fresh);
    }
    cg_h5_close(h5);
    free(image);
}

static void shapes_are_told(void **state)
{
    size_t size;
    unsigned char *image = h5_fixture("layouts_earliest", &size);
    cg_h5 *h5 = open_image("layouts_earliest", image, size);
    cg_h5_extents shape = { 0 };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(cg_h5_shape(h5, "/rank4", &shape, &error), CELLGATE_OK);
    assert_int_equal(shape.rank, 4);
    assert_int_equal(shape.extents[0], 3);
    assert_int_equal(shape.extents[1], 1);
    assert_int_equal(shape.extents[2], 4);
    assert_int_equal(shape.extents[3], 2);
    assert_int_equal(cg_h5_shape(h5, "/", &shape, &error), CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "'/' in the file is not a dataset");
    cg_h5_close(h5);
    free(image);
}

/* NOT_FOUND is of attributes alone, and says nothing. */
static void attributes_that_are_not_there(void **state)
{
    size_t size;
    unsigned char *image = h5_fixture("latest", &size);
    cg_h5 *h5 = open_image("latest", image, size);
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5_strings texts = { NULL, 7 };

    (void)state;
    assert_int_equal(cg_h5_texts(h5, "layers", "units", &texts, &error),
                     CELLGATE_NOT_FOUND);
    assert_string_equal(error.text, "");
    assert_int_equal(texts.count, 7);
    assert_int_equal(cg_h5_texts(h5, "levels", "units", &texts, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "the file has nothing at 'levels'");
    assert_int_equal(cg_h5_members(h5, "scalar", &texts, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "'scalar' in the file is not a group");
    cg_h5_close(h5);
    free(image);
}

static void the_number_of_elements_has_to_be_known(void **state)
{
    size_t size;
    unsigned char *image = h5_fixture("latest", &size);
    cg_h5 *h5 = open_image("latest", image, size);
    cellgate_error error = CELLGATE_ERROR_INIT;
    float data[2];

    (void)state;
    assert_int_equal(cg_h5_read(h5, "scalar", 2, data, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "'scalar' in the file has 1 elements, not "
                                    "the 2 that are read");
    cg_h5_close(h5);
    free(image);
}

/* ---- Damaged files ------------------------------------------------------- */

/* Everything that is known of the file, whatever comes of it. */
static void survive(const char *name, const unsigned char *image, size_t size)
{
    cg_h5 *h5 = NULL;

    if (cg_h5_open(image, size, name, &h5, NULL) != CELLGATE_OK) {
        assert_null(h5);
        return;
    }
    for (size_t i = 0; i < questions.count; i++)
        if (strcmp(questions.items[i].file, name) == 0)
            (void)h5_question_ask(h5, &questions.items[i], false, NULL);
    cg_h5_close(h5);
}

/* In memory of its own, so that a byte too far is seen. */
static void cut(const char *name)
{
    size_t size;
    unsigned char *image = h5_fixture(name, &size);

    for (size_t length = 0; length < size; length += 64) {
        unsigned char *part = malloc(length + 1);
        cg_h5 *h5 = NULL;

        assert_non_null(part);
        memcpy(part, image, length);
        survive(name, part, length);
        /* A superblock says how long its file is. */
        assert_int_not_equal(cg_h5_open(part, length, name, &h5, NULL),
                             CELLGATE_OK);
        free(part);
    }
    free(image);
}

static void change(const char *name)
{
    static const unsigned char masks[] = { 0x01, 0x80, 0xff };
    size_t size;
    unsigned char *image = h5_fixture(name, &size);

    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = image[i];

        image[i] = 0xff;
        survive(name, image, size);
        /* Most bytes are not in use: one change is enough for those. */
        for (size_t j = 0; byte != 0 && j < sizeof masks; j++) {
            image[i] = byte ^ masks[j];
            survive(name, image, size);
        }
        image[i] = byte;
    }
    free(image);
}

static void files_that_are_cut(void **state)
{
    const char *name = "";

    (void)state;
    for (size_t i = 0; i < questions.count; i++)
        if (strcmp(name, questions.items[i].file) != 0) {
            name = questions.items[i].file;
            cut(name);
        }
}

static void files_with_a_byte_changed(void **state)
{
    (void)state;
    change("earliest");
    change("latest_ordered");
    change("implicit");
    change("links_earliest");
    change("links_latest");
    change("layouts_latest");
    change("user_block");
}

/* ---- Loops --------------------------------------------------------------- */

static void put_number(unsigned char *at, size_t width, uint64_t number)
{
    for (size_t i = 0; i < width; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static unsigned char *find(unsigned char *image, size_t size, const char *text)
{
    for (size_t i = 0; i + strlen(text) <= size; i++)
        if (memcmp(image + i, text, strlen(text)) == 0)
            return image + i;
    fail_msg("no '%s'", text);
    return NULL;
}

/* The tree of the root's members, its only node, made its own child. */
static void a_tree_that_leads_to_itself(void **state)
{
    size_t size;
    unsigned char *image = h5_fixture("earliest", &size);
    unsigned char *tree = find(image, size, "TREE");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5_strings names;
    cg_h5 *h5;

    (void)state;
    tree[5] = 1; /* the level */
    put_number(tree + 32, 8, (uint64_t)(tree - image));
    h5 = open_image("earliest", image, size);
    assert_int_equal(cg_h5_members(h5, "", &names, &error), CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "'/' in the file is damaged: the tree of a "
                                    "group has a loop");
    assert_false(cg_h5_has(h5, "layers"));
    cg_h5_close(h5);
    free(image);
}

/* The root's header, of version 1, made to continue with itself. */
static void a_header_that_continues_with_itself(void **state)
{
    size_t size;
    unsigned char *image = h5_fixture("earliest", &size);
    unsigned char *header = image + 96; /* behind the superblock */
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_h5 *h5 = NULL;

    (void)state;
    assert_int_equal(header[0], 1);
    assert_true(header[18] >= 16); /* room in its first message */
    header[16] = 0x10;
    put_number(header + 24, 8, 96 + 16);
    put_number(header + 32, 8, 24);
    assert_int_equal(cg_h5_open(image, size, "the file", &h5, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text,
                        "'/' in the file is damaged: it refers to itself, or "
                        "to the same place again and again");
    free(image);
}

/* ---- Memory -------------------------------------------------------------- */

typedef struct whole_file {
    const char *name;
    unsigned char *image;
    size_t size;
} whole_file;

static cellgate_status ask_all(void *context)
{
    const whole_file *file = context;
    cg_h5 *h5 = NULL;
    cellgate_status status =
        cg_h5_open(file->image, file->size, file->name, &h5, NULL);

    for (size_t i = 0; status == CELLGATE_OK && i < questions.count; i++) {
        const h5_question *question = &questions.items[i];
        const cg_h5_extents shape = strcmp(question->kind, "data") == 0
                                        ? h5_question_shape(question)
                                        : (cg_h5_extents){ 0 };
        cg_h5_strings texts;
        float data[64];
        size_t elements = 1;

        if (strcmp(question->file, file->name) != 0)
            continue;
        for (int32_t axis = 0; axis < shape.rank; axis++)
            elements *= (size_t)shape.extents[axis];
        if (strcmp(question->kind, "data") == 0 && elements <= 64)
            status = cg_h5_read(h5, question->path, elements, data, NULL);
        else if (strcmp(question->kind, "members") == 0)
            status = cg_h5_members(h5, question->path, &texts, NULL);
        else if (strcmp(question->kind, "texts") == 0)
            status = cg_h5_texts(h5, question->path, question->parts[0], &texts,
                                 NULL);
    }
    cg_h5_close(h5);
    return status;
}

static void nothing_leaks_without_memory(void **state)
{
    static const char *const names[] = { "latest",         "layouts_earliest",
                                         "layouts_latest", "many_latest",
                                         "texts_earliest", "types_latest" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        whole_file file = { .name = names[i] };

        file.image = h5_fixture(file.name, &file.size);
        assert_true(fail_each_allocation(ask_all, &file) > 1);
        free(file.image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_what_h5py_wrote),
        cmocka_unit_test(shapes_are_told),
        cmocka_unit_test(attributes_that_are_not_there),
        cmocka_unit_test(the_number_of_elements_has_to_be_known),
        cmocka_unit_test(files_that_are_cut),
        cmocka_unit_test(files_with_a_byte_changed),
        cmocka_unit_test(a_tree_that_leads_to_itself),
        cmocka_unit_test(a_header_that_continues_with_itself),
        cmocka_unit_test(nothing_leaks_without_memory),
    };
    return cmocka_run_group_tests(tests, read_questions, finish_questions);
}
