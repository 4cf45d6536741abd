/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/formats/npz.h"
#include "tests/unit/scratch_folder.h"

/* ---- Archives made by hand, so that they can be wrong ------------------- */

/* One member; what is 0 is filled in rightly. */
typedef struct made_member {
    const char *name;
    const void *data;
    uint32_t size;
    uint16_t method;       /* 0 stored, 8 deflated */
    uint16_t flags;        /* bit 0: encrypted */
    uint32_t claimed_size; /* uncompressed, in the directory */
    uint32_t claimed_packed;
    uint32_t crc_change; /* added to the checksum */
    int shares_first;    /* no bytes of its own: the first one's */
} made_member;

typedef struct archive {
    unsigned char *data;
    size_t size;
    size_t room;
} archive;

static void put(archive *to, const void *data, size_t size)
{
    if (to->size + size > to->room) {
        to->room = 2 * (to->size + size);
        to->data = realloc(to->data, to->room);
        assert_non_null(to->data);
    }
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void put2(archive *to, uint32_t value)
{
    unsigned char bytes[2] = { (unsigned char)value,
                               (unsigned char)(value >> 8) };
    put(to, bytes, sizeof bytes);
}

static void put4(archive *to, uint32_t value)
{
    put2(to, value & 0xffff);
    put2(to, value >> 16);
}

static uint32_t crc_of(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* What the local header and the directory share (APPNOTE 4.3.7, 4.3.12). */
static void put_entry(archive *to, const made_member *member)
{
    put2(to, 20);
    put2(to, member->flags);
    put2(to, member->method);
    put2(to, 0);
    put2(to, 0x21);
    put4(to, crc_of(member->data, member->size) + member->crc_change);
    put4(to,
         member->claimed_packed != 0 ? member->claimed_packed : member->size);
    put4(to, member->claimed_size != 0 ? member->claimed_size : member->size);
    put2(to, (uint32_t)strlen(member->name));
    put2(to, 0);
}

static archive make_archive(const made_member *members, size_t count)
{
    archive to = { NULL, 0, 0 };
    uint32_t *offsets = calloc(count + 1, sizeof *offsets);
    uint32_t directory;

    assert_non_null(offsets);
    for (size_t i = 0; i < count; i++) {
        if (members[i].shares_first)
            continue;
        offsets[i] = (uint32_t)to.size;
        put(&to, "PK\3\4", 4);
        put_entry(&to, &members[i]);
        put(&to, members[i].name, strlen(members[i].name));
        put(&to, members[i].data, members[i].size);
    }
    directory = (uint32_t)to.size;
    for (size_t i = 0; i < count; i++) {
        put(&to, "PK\1\2", 4);
        put2(&to, 20);
        put_entry(&to, &members[i]);
        put(&to, "\0\0\0\0\0\0\0\0\0\0", 10);
        put4(&to, offsets[i]);
        put(&to, members[i].name, strlen(members[i].name));
    }
    put(&to, "PK\5\6\0\0\0\0", 8);
    put2(&to, (uint32_t)count);
    put2(&to, (uint32_t)count);
    put4(&to, (uint32_t)to.size - 12 - directory);
    put4(&to, directory);
    put2(&to, 0);
    free(offsets);
    return to;
}

/* ---- Tests ------------------------------------------------------------- */

/* The header of a .npy of that many bytes, in four digits, and three of them.
 */
#define NPY_OF(count)                                                          \
    "\x93NUMPY\x01\x00\x36\x00"                                                \
    "{'descr':'|u1','fortran_order':False,'shape':(" count ",)}\nabc"
#define NPY NPY_OF("   3")
#define NPY_SIZE (sizeof NPY - 1)

static made_member sound(const char *name)
{
    made_member member = { .name = name, .data = NPY, .size = NPY_SIZE };
    return member;
}

static cellgate_status read_archive(const archive *from,
                                    cg_named_array **arrays, size_t *count,
                                    cellgate_error *error)
{
    const char *path = scratch_write("made.npz", from->data, from->size);
    return cg_npz_read(path, from->size, arrays, count, error);
}

static void sound_archive(void **state)
{
    made_member members[] = { sound("a.npy"), sound("folder/b.npy"),
                              sound("c.npy.npy") };
    archive made = make_archive(members, 3);
    cg_named_array *arrays = NULL;
    size_t count = 0;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    if (read_archive(&made, &arrays, &count, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(count, 3);
    assert_string_equal(arrays[0].name, "a");
    assert_string_equal(arrays[1].name, "folder/b");
    assert_string_equal(arrays[2].name, "c.npy");
    assert_int_equal(arrays[1].tensor.shape[0], 3);
    assert_memory_equal(arrays[2].tensor.data, "abc", 3);
    cg_named_arrays_free(arrays, count);
    cg_named_arrays_free(NULL, 0);
    free(made.data);
}

static void expect(const made_member *members, size_t members_count,
                   cellgate_status status, const char *part)
{
    archive made = make_archive(members, members_count);
    cg_named_array *arrays = NULL;
    size_t count = 77;
    cellgate_error error = CELLGATE_ERROR_INIT;

    assert_int_equal(read_archive(&made, &arrays, &count, &error), status);
    assert_null(arrays);
    assert_int_equal(count, 77);
    if (strstr(error.text, "made.npz: ") == NULL ||
        strstr(error.text, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", error.text, part);
    free(made.data);
}

static void names_are_checked(void **state)
{
    static const char *const names[] = { "a",      "a.txt",   ".npy",
                                         "a.npy/", "a\n.npy", "a\x7f.npy",
                                         "" };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        made_member members[] = { sound("first.npy"), sound(names[i]) };
        expect(members, 2, CELLGATE_BAD_FILE, "member 1 is not named like");
    }
}

static void equal_names(void **state)
{
    made_member members[] = { sound("a.npy"), sound("b.npy"), sound("a.npy") };

    (void)state;
    expect(members, 3, CELLGATE_BAD_FILE, "array 'a': there twice");
}

static void sizes_are_checked(void **state)
{
    made_member member = sound("a.npy");

    (void)state;
    member.claimed_size = NPY_SIZE + 1;
    expect(&member, 1, CELLGATE_BAD_FILE, "cannot come of");
    member.claimed_packed = NPY_SIZE + 1;
    expect(&member, 1, CELLGATE_BAD_FILE, "array 'a': ");
    member.claimed_size = member.claimed_packed = 0x7fffffff;
    expect(&member, 1, CELLGATE_BAD_FILE, "larger than the file");
    /* A bomb: deflate cannot do this. */
    member.method = 8;
    member.claimed_size = 0x7fffffff;
    member.claimed_packed = 0;
    expect(&member, 1, CELLGATE_BAD_FILE, "cannot come of");
}

/* Members that share their bytes: a small file that reads as a large one. */
static void overlapping_members(void **state)
{
    static char array[1064] = NPY_OF("1000");
    made_member members[8];

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        static const char *const names[] = {
            "0.npy", "1.npy", "2.npy", "3.npy",
            "4.npy", "5.npy", "6.npy", "7.npy"
        };
        members[i] = (made_member){ .name = names[i],
                                    .data = array,
                                    .size = sizeof array,
                                    .shares_first = i > 0 };
    }
    expect(members, 8, CELLGATE_BAD_FILE, "larger than the file");
}

static void checksums_are_checked(void **state)
{
    made_member members[] = { sound("a.npy"), sound("b.npy") };

    (void)state;
    members[1].crc_change = 1;
    expect(members, 2, CELLGATE_BAD_FILE, "array 'b': CRC error");
}

static void methods_are_checked(void **state)
{
    made_member member = sound("a.npy");

    (void)state;
    member.method = 12;
    expect(&member, 1, CELLGATE_UNSUPPORTED, "compression method 12");
    member.method = 0;
    member.flags = 1;
    expect(&member, 1, CELLGATE_UNSUPPORTED, "array 'a': encrypted");
}

static void member_that_is_no_array(void **state)
{
    made_member members[] = { sound("a.npy"), sound("b.npy") };

    (void)state;
    members[1].data = "something else";
    members[1].size = 14;
    expect(members, 2, CELLGATE_BAD_FILE, "array 'b': not a .npy");
    members[1].size = 3;
    expect(members, 2, CELLGATE_BAD_FILE, "array 'b': ends");
    members[1].data = NPY;
    members[1].size = NPY_SIZE - 1;
    expect(members, 2, CELLGATE_BAD_FILE, "array 'b': 2 bytes follow");
    members[1].method = 8;
    members[1].size = NPY_SIZE;
    expect(members, 2, CELLGATE_BAD_FILE, "array 'b': ");
}

static void number_of_members(void **state)
{
    size_t most = CG_NPZ_MEMBERS_MAX;
    made_member *members = calloc(most + 1, sizeof *members);
    char(*names)[16] = calloc(most + 1, sizeof *names);
    archive made;
    cg_named_array *arrays = NULL;
    size_t count = 0;

    (void)state;
    assert_true(members != NULL && names != NULL);
    for (size_t i = 0; i <= most; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu.npy", i);
        members[i] = sound(names[i]);
    }
    expect(members, most + 1, CELLGATE_BAD_FILE, "at most 4096");
    made = make_archive(members, most);
    assert_int_equal(read_archive(&made, &arrays, &count, NULL), CELLGATE_OK);
    assert_int_equal(count, most);
    cg_named_arrays_free(arrays, count);
    free(made.data);
    free(names);
    free(members);
}

static void not_an_archive(void **state)
{
    archive made = { (unsigned char *)"PK\3\4 and no more", 16, 16 };
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_named_array *arrays = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(read_archive(&made, &arrays, &count, &error),
                     CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "made.npz: "));
    assert_int_equal(cg_npz_read("no-such.npz", 0, &arrays, &count, &error),
                     CELLGATE_IO);
    assert_non_null(strstr(error.text, "no-such.npz: "));
}

static void cut_anywhere(void **state)
{
    made_member members[] = { sound("a.npy"), sound("b.npy") };
    archive made = make_archive(members, 2);
    size_t size = made.size;

    (void)state;
    for (made.size = 0; made.size < size; made.size++) {
        cg_named_array *arrays = NULL;
        size_t count = 0;
        assert_int_not_equal(read_archive(&made, &arrays, &count, NULL),
                             CELLGATE_OK);
        assert_null(arrays);
    }
    free(made.data);
}

/* Any byte changed: an error or arrays, and no sanitizer's report. */
static void changed_anywhere(void **state)
{
    static const unsigned char changes[] = { 0x01, 0x80, 0xff };
    made_member members[] = { sound("a.npy"), sound("b.npy") };
    archive made = make_archive(members, 2);
    size_t refused = 0;

    (void)state;
    for (size_t at = 0; at < made.size; at++)
        for (size_t i = 0; i < sizeof changes; i++) {
            cg_named_array *arrays = NULL;
            size_t count = 0;
            made.data[at] ^= changes[i];
            if (read_archive(&made, &arrays, &count, NULL) == CELLGATE_OK)
                cg_named_arrays_free(arrays, count);
            else
                refused++;
            made.data[at] ^= changes[i];
        }
    /* Every byte of the members' data is covered by its checksum. */
    assert_true(refused >= 2 * NPY_SIZE * sizeof changes);
    free(made.data);
}

/* ---- Writing ----------------------------------------------------------- */

static void written_archive_reads_back(void **state)
{
    float values[] = { 1.5f, -2, 3 };
    const char *names[] = { "first", "second/\xc3\xbc" };
    cellgate_tensor tensors[] = {
        { sizeof tensors[0], CELLGATE_F32, 1, { 3 }, values },
        { sizeof tensors[0], CELLGATE_F32, 2, { 2, 0 }, NULL },
    };
    const char *path = scratch_path("written.npz");
    FILE *stream = fopen(path, "w+b");
    cellgate_error error = CELLGATE_ERROR_INIT;
    cg_named_array *arrays = NULL;
    size_t count = 0;
    long size;

    (void)state;
    assert_non_null(stream);
    if (cg_npz_write(stream, path, names, tensors, 2, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    size = ftell(stream);
    assert_int_equal(fclose(stream), 0);
    if (cg_npz_read(path, (uint64_t)size, &arrays, &count, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    assert_int_equal(count, 2);
    assert_string_equal(arrays[0].name, names[0]);
    assert_string_equal(arrays[1].name, names[1]);
    assert_memory_equal(arrays[0].tensor.data, values, sizeof values);
    assert_int_equal(arrays[1].tensor.rank, 2);
    assert_int_equal(arrays[1].tensor.shape[1], 0);
    cg_named_arrays_free(arrays, count);
}

static void equal_names_are_not_written(void **state)
{
    float value = 1;
    const char *names[] = { "same", "same" };
    cellgate_tensor tensor = { sizeof tensor, CELLGATE_F32, 0, { 0 }, &value };
    cellgate_tensor tensors[] = { tensor, tensor };
    FILE *stream = tmpfile();
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_non_null(stream);
    assert_int_equal(cg_npz_write(stream, "OUT", names, tensors, 2, &error),
                     CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "OUT: two arrays are named 'same'"));
    (void)fclose(stream);
}

/* /dev/full says at each write that the disk is full. */
static void full_disk(void **state)
{
    static float values[100000];
    const char *names[] = { "a" };
    cellgate_tensor tensor = {
        sizeof tensor, CELLGATE_F32, 1, { 100000 }, values
    };
    FILE *stream = fopen("/dev/full", "r+b");
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    if (stream == NULL)
        skip();
    assert_int_equal(cg_npz_write(stream, "OUT", names, &tensor, 1, &error),
                     CELLGATE_IO);
    assert_non_null(strstr(error.text, "OUT: cannot be written"));
    (void)fclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_archive),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(equal_names),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(overlapping_members),
        cmocka_unit_test(checksums_are_checked),
        cmocka_unit_test(methods_are_checked),
        cmocka_unit_test(member_that_is_no_array),
        cmocka_unit_test(number_of_members),
        cmocka_unit_test(not_an_archive),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere),
        cmocka_unit_test(written_archive_reads_back),
        cmocka_unit_test(equal_names_are_not_written),
        cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
