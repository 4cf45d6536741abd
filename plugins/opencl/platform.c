/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/platform.h"

#define PLATFORMS_MAX 32
#define TEXT_SIZE 512
#define LEAST_LOCAL_MEMORY (16u << 10)

/* Where vendors say which card it is; the numbers are their extensions'. */
#define DEVICE_PCI_BUS_INFO_KHR 0x410F
#define DEVICE_PCI_BUS_NV 0x4008
#define DEVICE_PCI_SLOT_NV 0x4009
#define DEVICE_PCI_DOMAIN_NV 0x400A
#define DEVICE_TOPOLOGY_AMD 0x4037

/* ---- Asking ------------------------------------------------------------ */

/* Texts of a driver come as they are: without blanks around, cut to fit. */
static void tidy(char *text)
{
    size_t blanks = strspn(text, " \t\r\n"), length;

    memmove(text, text + blanks, strlen(text + blanks) + 1);
    for (length = strlen(text); length > 0 && text[length - 1] <= ' '; length--)
        text[length - 1] = '\0';
}

static void device_text(const struct ocl_api *cl, cl_device_id id,
                        cl_device_info what, char *text)
{
    size_t size = 0;
    char *whole;

    text[0] = '\0';
    if (cl->GetDeviceInfo(id, what, 0, NULL, &size) != CL_SUCCESS || size == 0)
        return;
    whole = calloc(1, size + 1);
    if (whole && cl->GetDeviceInfo(id, what, size, whole, NULL) == CL_SUCCESS) {
        (void)snprintf(text, TEXT_SIZE, "%s", whole);
        tidy(text);
    }
    free(whole);
}

static void platform_text(const struct ocl_api *cl, cl_platform_id id,
                          cl_platform_info what, char *text)
{
    char whole[4 * TEXT_SIZE] = "";

    text[0] = '\0';
    if (cl->GetPlatformInfo(id, what, sizeof whole - 1, whole, NULL) !=
        CL_SUCCESS)
        return;
    (void)snprintf(text, TEXT_SIZE, "%s", whole);
    tidy(text);
}

/* A number of the type that *value has; as it is where it isn't known. */
#define ASK(cl, id, what, value)                                               \
    ((cl)->GetDeviceInfo(id, what, sizeof *(value), value, NULL) == CL_SUCCESS)

static bool has_extension(const struct ocl_api *cl, cl_device_id id,
                          const char *name)
{
    size_t size = 0, length = strlen(name);
    char *all, *at;
    bool found = false;

    if (cl->GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &size) !=
        CL_SUCCESS)
        return false;
    all = calloc(1, size + 1);
    if (all && cl->GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, size, all, NULL) ==
                   CL_SUCCESS)
        for (at = all; (at = strstr(at, name)) != NULL; at += length)
            if ((at == all || at[-1] == ' ') &&
                (at[length] == ' ' || at[length] == '\0'))
                found = true;
    free(all);
    return found;
}

/* ---- Identity ---------------------------------------------------------- */

struct pci_address {
    unsigned domain, bus, device, function;
};

static bool pci_address(const struct ocl_api *cl, cl_device_id id,
                        struct pci_address *at)
{
    cl_uint khr[4], bus, slot, domain = 0;
    struct {
        cl_uint type;
        cl_uchar unused[17], bus, device, function;
    } amd;

    if (has_extension(cl, id, "cl_khr_pci_bus_info") &&
        ASK(cl, id, DEVICE_PCI_BUS_INFO_KHR, &khr)) {
        *at = (struct pci_address){ khr[0], khr[1], khr[2], khr[3] };
        return true;
    }
    if (has_extension(cl, id, "cl_nv_device_attribute_query") &&
        ASK(cl, id, DEVICE_PCI_BUS_NV, &bus) &&
        ASK(cl, id, DEVICE_PCI_SLOT_NV, &slot)) {
        (void)ASK(cl, id, DEVICE_PCI_DOMAIN_NV, &domain);
        *at = (struct pci_address){ domain, bus, slot >> 3, slot & 7 };
        return true;
    }
    if (has_extension(cl, id, "cl_amd_device_attribute_query") &&
        ASK(cl, id, DEVICE_TOPOLOGY_AMD, &amd) && amd.type == 1) {
        *at = (struct pci_address){ 0, amd.bus, amd.device, amd.function };
        return true;
    }
    return false;
}

/* The CPU plugin's resource for a CPU, a card's address, or else the number of
   the device in its platform. */
static void describe_resource(const struct ocl_api *cl, struct ocl_found *found,
                              const char *platform, uint32_t number)
{
    cellgate_device_description *of = &found->description;
    struct pci_address at;

    if (found->type & CL_DEVICE_TYPE_CPU)
        (void)snprintf(of->resource, sizeof of->resource, OCL_CPU_RESOURCE);
    else if (pci_address(cl, found->id, &at))
        (void)snprintf(of->resource, sizeof of->resource,
                       "pci:%04x:%02x:%02x.%x", at.domain, at.bus, at.device,
                       at.function);
    else
        (void)snprintf(of->resource, sizeof of->resource, "opencl:%.40s:%u",
                       platform, (unsigned)number);
}

/* FNV-1a: the identity is short, and drivers' texts are long. */
static uint64_t digest(const char *text, uint64_t so_far)
{
    for (; *text; text++)
        so_far = (so_far ^ (unsigned char)*text) * 0x100000001b3u;
    return so_far;
}

static const char *type_name(cl_device_type type)
{
    return type & CL_DEVICE_TYPE_GPU   ? "gpu"
           : type & CL_DEVICE_TYPE_CPU ? "cpu"
                                       : "accelerator";
}

static void describe_identity(const struct ocl_api *cl, struct ocl_found *found,
                              const char *platform)
{
    cellgate_device_description *of = &found->description;
    uint64_t sum = 0xcbf29ce484222325u;
    char text[TEXT_SIZE];
    cl_uint vendor_id = 0;

    platform_text(cl, found->platform, CL_PLATFORM_VERSION, text);
    sum = digest(text, sum);
    device_text(cl, found->id, CL_DEVICE_VERSION, text);
    sum = digest(text, sum);
    device_text(cl, found->id, CL_DEVICE_OPENCL_C_VERSION, text);
    sum = digest(text, sum);
    sum = digest(of->driver, sum);
    (void)ASK(cl, found->id, CL_DEVICE_VENDOR_ID, &vendor_id);
    (void)snprintf(of->identity, sizeof of->identity,
                   "%.40s/%s/%.70s/%x/%uu/%016llx/%s", platform,
                   type_name(found->type), of->name, vendor_id, found->units,
                   (unsigned long long)sum, PACKAGE_VERSION);
}

/* ---- One device -------------------------------------------------------- */

static void find_lack(const struct ocl_api *cl, struct ocl_found *found)
{
    cl_bool available = CL_FALSE, compiler = CL_FALSE;
    char version[TEXT_SIZE];
    unsigned major = 0, minor = 0;

    (void)ASK(cl, found->id, CL_DEVICE_AVAILABLE, &available);
    (void)ASK(cl, found->id, CL_DEVICE_COMPILER_AVAILABLE, &compiler);
    device_text(cl, found->id, CL_DEVICE_VERSION, version);
    (void)sscanf(version, "OpenCL %u.%u", &major, &minor);
    if (!available)
        (void)snprintf(found->lacks, sizeof found->lacks,
                       "the driver says that it is not available; another "
                       "process may own it");
    else if (!compiler)
        (void)snprintf(found->lacks, sizeof found->lacks,
                       "its driver has no compiler; install the full driver");
    else if (major < 1 || (major == 1 && minor < 2))
        (void)snprintf(found->lacks, sizeof found->lacks,
                       "it has %.40s, and OpenCL 1.2 is needed; install a "
                       "newer driver",
                       version[0] ? version : "no version");
    else if (found->local_memory < LEAST_LOCAL_MEMORY)
        (void)snprintf(found->lacks, sizeof found->lacks,
                       "it has %llu bytes of local memory, and %u are needed",
                       (unsigned long long)found->local_memory,
                       LEAST_LOCAL_MEMORY);
}

/* A group's extents have bounds of their own, apart from its size. */
static void ask_group(const struct ocl_api *cl, struct ocl_found *found)
{
    size_t most[16] = { 0 };

    (void)ASK(cl, found->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, &found->group);
    (void)ASK(cl, found->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, &most);
    if (most[0] > 0 && found->group > most[0])
        found->group = most[0];
    if (found->group < 1)
        found->group = 1;
    found->second = most[1] > 0 ? most[1] : 1;
}

static void ask_limits(const struct ocl_api *cl, struct ocl_found *found)
{
    cl_bool unified = CL_FALSE;

    (void)ASK(cl, found->id, CL_DEVICE_HOST_UNIFIED_MEMORY, &unified);
    (void)ASK(cl, found->id, CL_DEVICE_MAX_COMPUTE_UNITS, &found->units);
    (void)ASK(cl, found->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT,
              &found->vector);
    ask_group(cl, found);
    (void)ASK(cl, found->id, CL_DEVICE_LOCAL_MEM_SIZE, &found->local_memory);
    (void)ASK(cl, found->id, CL_DEVICE_GLOBAL_MEM_SIZE, &found->memory);
    (void)ASK(cl, found->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
              &found->largest_buffer);
    found->unified = unified == CL_TRUE;
    if (found->vector < 1)
        found->vector = 1;
}

static void describe(const struct ocl_api *cl, struct ocl_found *found,
                     uint32_t number)
{
    cellgate_device_description *of = &found->description;
    char text[TEXT_SIZE], platform[TEXT_SIZE];

    (void)ASK(cl, found->id, CL_DEVICE_TYPE, &found->type);
    ask_limits(cl, found);
    platform_text(cl, found->platform, CL_PLATFORM_NAME, platform);
    device_text(cl, found->id, CL_DEVICE_NAME, text);
    (void)snprintf(of->name, sizeof of->name, "%.95s",
                   text[0] ? text : "OpenCL device without a name");
    device_text(cl, found->id, CL_DEVICE_VENDOR, text);
    (void)snprintf(of->vendor, sizeof of->vendor, "%.63s", text);
    device_text(cl, found->id, CL_DRIVER_VERSION, text);
    (void)snprintf(of->driver, sizeof of->driver, "%.35s, %.20s", platform,
                   text);
    of->kind = found->type & CL_DEVICE_TYPE_GPU   ? CELLGATE_DEVICE_GPU
               : found->type & CL_DEVICE_TYPE_CPU ? CELLGATE_DEVICE_CPU
                                                  : CELLGATE_DEVICE_ACCELERATOR;
    of->memory = found->memory;
    of->queue_depth = found->unified ? 1 : 2;
    describe_resource(cl, found, platform, number);
    describe_identity(cl, found, platform);
    find_lack(cl, found);
}

/* ---- All of them ------------------------------------------------------- */

static void add_platform(const struct ocl_api *cl, cl_platform_id platform,
                         struct ocl_found_list *list)
{
    cl_device_id ids[OCL_DEVICES_MAX];
    cl_uint count = 0, i;

    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, OCL_DEVICES_MAX, ids,
                         &count) != CL_SUCCESS)
        return;
    for (i = 0; i < count && i < OCL_DEVICES_MAX; i++) {
        struct ocl_found *found = &list->devices[list->count];

        if (list->count == OCL_DEVICES_MAX)
            return;
        memset(found, 0, sizeof *found);
        found->description.struct_size = sizeof found->description;
        found->platform = platform;
        found->id = ids[i];
        describe(cl, found, i);
        list->count++;
    }
}

static cellgate_status none_usable(const struct ocl_found_list *list,
                                   cl_uint platforms, cellgate_error *error)
{
    uint32_t i;

    if (list->count == 0)
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             "%u OpenCL platforms, and none has a device; is "
                             "the hardware there, and may this user open it "
                             "(groups render, video)?",
                             (unsigned)platforms);
    for (i = 0; i < list->count; i++)
        if (!list->devices[i].lacks[0])
            return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_NO_DEVICE, "%s: %s",
                         list->devices[0].description.name,
                         list->devices[0].lacks);
}

cellgate_status ocl_find_devices(const struct ocl_api *cl,
                                 struct ocl_found_list *list,
                                 cellgate_error *error)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint count = 0, i;
    cl_int code = cl->GetPlatformIDs(PLATFORMS_MAX, platforms, &count);

    list->count = 0;
    if (code != CL_SUCCESS || count == 0) {
        (void)cellgate_fail(
            error, CELLGATE_NO_DEVICE,
            "no OpenCL driver: the ICD loader found no platform (%s, %d); "
            "install your device's driver (on Debian: intel-opencl-icd, "
            "mesa-opencl-icd or nvidia-opencl-icd; pocl-opencl-icd for CPUs), "
            "which puts a file into /etc/OpenCL/vendors",
            code != CL_SUCCESS ? ocl_code_name(code) : "none", (int)code);
        error->vendor_code = code;
        return CELLGATE_NO_DEVICE;
    }
    for (i = 0; i < count && i < PLATFORMS_MAX; i++)
        add_platform(cl, platforms[i], list);
    return none_usable(list, count, error);
}
