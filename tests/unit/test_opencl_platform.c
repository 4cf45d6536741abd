/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the OpenCL plugin makes of drivers: with functions of its own in place
 * of a driver's, so that it needs none and every lack can be had.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/opencl/platform.h"

/* ---- A driver ---------------------------------------------------------- */

struct fake {
    const char *name, *version, *extensions;
    cl_device_type type;
    cl_bool available, compiler;
    cl_ulong local_memory;
    size_t group, extents[3]; /* most of a group, and of its dimensions */
};

static struct fake fakes[3];
static cl_uint fake_count;
static cl_int platforms_code;
static const char *driver_version;

static cl_int answer(const void *from, size_t length, size_t size, void *to,
                     size_t *needed)
{
    if (needed)
        *needed = length;
    if (to && size < length)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, from, length);
    return CL_SUCCESS;
}

static cl_int get_platforms(cl_uint most, cl_platform_id *platforms,
                            cl_uint *count)
{
    if (platforms_code != CL_SUCCESS)
        return platforms_code;
    if (platforms && most > 0)
        platforms[0] = (cl_platform_id)&fakes;
    *count = 1;
    return CL_SUCCESS;
}

static cl_int get_platform_info(cl_platform_id id, cl_platform_info what,
                                size_t size, void *to, size_t *needed)
{
    const char *text =
        what == CL_PLATFORM_NAME ? " Fake Computing  " : "OpenCL 3.0 fake";

    (void)id;
    return answer(text, strlen(text) + 1, size, to, needed);
}

static cl_int get_devices(cl_platform_id platform, cl_device_type type,
                          cl_uint most, cl_device_id *ids, cl_uint *count)
{
    cl_uint i;

    (void)platform;
    assert_int_equal(type, CL_DEVICE_TYPE_ALL);
    *count = fake_count;
    for (i = 0; i < most && i < fake_count; i++)
        ids[i] = (cl_device_id)&fakes[i];
    return fake_count > 0 ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

static cl_int get_device_info(cl_device_id id, cl_device_info what, size_t size,
                              void *to, size_t *needed)
{
    const struct fake *fake = (const struct fake *)(void *)id;
    const cl_uint pci[4] = { 0, 0x41, 0, 1 }, units = 7;
    const char *text = NULL;

    switch (what) {
    case CL_DEVICE_TYPE:
        return answer(&fake->type, sizeof fake->type, size, to, needed);
    case CL_DEVICE_AVAILABLE:
        return answer(&fake->available, sizeof(cl_bool), size, to, needed);
    case CL_DEVICE_COMPILER_AVAILABLE:
        return answer(&fake->compiler, sizeof(cl_bool), size, to, needed);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return answer(&fake->local_memory, sizeof(cl_ulong), size, to, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return answer(&fake->group, sizeof fake->group, size, to, needed);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return answer(fake->extents, sizeof fake->extents, size, to, needed);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer(&units, sizeof units, size, to, needed);
    case 0x410F: /* CL_DEVICE_PCI_BUS_INFO_KHR */
        return answer(pci, sizeof pci, size, to, needed);
    case CL_DEVICE_NAME:
        text = fake->name;
        break;
    case CL_DEVICE_VERSION:
        text = fake->version;
        break;
    case CL_DEVICE_EXTENSIONS:
        text = fake->extensions;
        break;
    case CL_DRIVER_VERSION:
        text = driver_version;
        break;
    case CL_DEVICE_VENDOR:
        text = "Fake";
        break;
    default:
        return CL_INVALID_VALUE;
    }
    return answer(text, strlen(text) + 1, size, to, needed);
}

static struct ocl_found_list list;
static cellgate_error error;

static cellgate_status find(void)
{
    const struct ocl_api api = { .GetPlatformIDs = get_platforms,
                                 .GetPlatformInfo = get_platform_info,
                                 .GetDeviceIDs = get_devices,
                                 .GetDeviceInfo = get_device_info };

    error = (cellgate_error)CELLGATE_ERROR_INIT;
    return ocl_find_devices(&api, &list, &error);
}

static int setup(void **state)
{
    int i;

    (void)state;
    for (i = 0; i < 3; i++)
        fakes[i] = (struct fake){ "Card",          "OpenCL 1.2 fake",
                                  "cl_khr_icd",    CL_DEVICE_TYPE_GPU,
                                  CL_TRUE,         CL_TRUE,
                                  32768,           256,
                                  { 256, 256, 64 } };
    fake_count = 1;
    platforms_code = CL_SUCCESS;
    driver_version = "1.0";
    return 0;
}

/* ---- Tests ------------------------------------------------------------- */

static void assert_lacks(const char *text)
{
    assert_int_equal(find(), CELLGATE_NO_DEVICE);
    if (!strstr(error.text, text))
        fail_msg("\"%s\" does not say: %s", error.text, text);
}

/* Each lack has its own reason, and a remedy. */
static void test_lacks(void **state)
{
    (void)state;
    platforms_code = -1001;
    assert_lacks("-1001");
    assert_lacks("install your device's driver");
    platforms_code = CL_SUCCESS;
    fake_count = 0;
    assert_lacks("none has a device");
    fake_count = 1;
    fakes[0].version = "OpenCL 1.1 fake";
    assert_lacks("OpenCL 1.2 is needed");
    fakes[0].version = "OpenCL 1.2";
    fakes[0].compiler = CL_FALSE;
    assert_lacks("no compiler");
    fakes[0].compiler = CL_TRUE;
    fakes[0].local_memory = 1024;
    assert_lacks("1024 bytes of local memory");
    fakes[0].local_memory = 16384;
    fakes[0].available = CL_FALSE;
    assert_lacks("not available");
    fakes[0].available = CL_TRUE;
    assert_int_equal(find(), CELLGATE_OK);
}

/* One that can be used is enough; the others say why they cannot. */
static void test_one_of_two(void **state)
{
    (void)state;
    fake_count = 2;
    fakes[0].version = "OpenCL 1.0 old";
    assert_int_equal(find(), CELLGATE_OK);
    assert_int_equal(list.count, 2);
    assert_non_null(strstr(list.devices[0].lacks, "OpenCL 1.0 old"));
    assert_string_equal(list.devices[1].lacks, "");
}

static void test_resources(void **state)
{
    (void)state;
    fake_count = 3;
    fakes[0].type = CL_DEVICE_TYPE_CPU;
    fakes[1].extensions = "cl_khr_fp16 cl_khr_pci_bus_info";
    assert_int_equal(find(), CELLGATE_OK);
    assert_string_equal(list.devices[0].description.resource, "cpu");
    assert_int_equal(list.devices[0].description.kind, CELLGATE_DEVICE_CPU);
    assert_string_equal(list.devices[1].description.resource,
                        "pci:0000:41:00.1");
    assert_int_equal(list.devices[1].description.kind, CELLGATE_DEVICE_GPU);
    assert_string_equal(list.devices[2].description.resource,
                        "opencl:Fake Computing:2");
}

/* A group's first dimension may have a bound below the group's. */
static void test_groups(void **state)
{
    (void)state;
    fakes[0].group = 1024;
    memcpy(fakes[0].extents, (const size_t[3]){ 256, 4, 1 },
           sizeof fakes[0].extents);
    assert_int_equal(find(), CELLGATE_OK);
    assert_int_equal(list.devices[0].group, 256);
    assert_int_equal(list.devices[0].second, 4);
    fakes[0].group = 64;
    assert_int_equal(find(), CELLGATE_OK);
    assert_int_equal(list.devices[0].group, 64);
}

/* The same from process to process; another one with another driver. */
static void test_identity(void **state)
{
    char before[192];

    (void)state;
    assert_int_equal(find(), CELLGATE_OK);
    strcpy(before, list.devices[0].description.identity);
    assert_non_null(strstr(before, "Fake Computing/gpu/Card/"));
    assert_int_equal(find(), CELLGATE_OK);
    assert_string_equal(list.devices[0].description.identity, before);
    driver_version = "1.1";
    assert_int_equal(find(), CELLGATE_OK);
    assert_string_not_equal(list.devices[0].description.identity, before);
    driver_version = "1.0";
    fakes[0].version = "OpenCL 1.2 faker";
    assert_int_equal(find(), CELLGATE_OK);
    assert_string_not_equal(list.devices[0].description.identity, before);
}

/* What drivers answer is cut, not believed to fit. */
static void test_long_texts(void **state)
{
    static char longest[3000];

    (void)state;
    memset(longest, 'n', sizeof longest - 1);
    fakes[0].name = fakes[0].version = fakes[0].extensions = longest;
    driver_version = longest;
    assert_int_equal(find(), CELLGATE_NO_DEVICE);
    assert_int_equal(strlen(list.devices[0].description.name), 95);
    fakes[0].version = "OpenCL 1.2";
    fakes[0].name = "";
    assert_int_equal(find(), CELLGATE_OK);
    assert_true(list.devices[0].description.name[0] != '\0');
}

/* Codes come out by name, and as the status that a host acts upon. */
static void test_codes(void **state)
{
    static const struct {
        cl_int code;
        cellgate_status status;
        const char *name;
    } cases[] = {
        { CL_MEM_OBJECT_ALLOCATION_FAILURE, CELLGATE_DEVICE_MEMORY,
          "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)" },
        { CL_OUT_OF_RESOURCES, CELLGATE_DEVICE_MEMORY,
          "CL_OUT_OF_RESOURCES (-5)" },
        { CL_OUT_OF_HOST_MEMORY, CELLGATE_NO_MEMORY,
          "CL_OUT_OF_HOST_MEMORY (-6)" },
        { CL_DEVICE_NOT_AVAILABLE, CELLGATE_DEVICE_LOST,
          "CL_DEVICE_NOT_AVAILABLE (-2)" },
        { CL_BUILD_PROGRAM_FAILURE, CELLGATE_DEVICE_FAILED,
          "CL_BUILD_PROGRAM_FAILURE (-11)" },
        { -1001, CELLGATE_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR (-1001)" },
        { -9999, CELLGATE_DEVICE_LOST, "(-9999)" },
        { -4242, CELLGATE_DEVICE_FAILED, "an unknown code (-4242)" },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        error = (cellgate_error)CELLGATE_ERROR_INIT;
        assert_int_equal(ocl_fail(&error, cases[i].code, "clThis", "that"),
                         cases[i].status);
        assert_int_equal(error.status, cases[i].status);
        assert_int_equal(error.vendor_code, cases[i].code);
        assert_non_null(strstr(error.text, "that: clThis answers"));
        assert_non_null(strstr(error.text, cases[i].name));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lacks, setup),
        cmocka_unit_test_setup(test_one_of_two, setup),
        cmocka_unit_test_setup(test_resources, setup),
        cmocka_unit_test_setup(test_groups, setup),
        cmocka_unit_test_setup(test_identity, setup),
        cmocka_unit_test_setup(test_long_texts, setup),
        cmocka_unit_test_setup(test_codes, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
