/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/cuda/found.h"

#define VERSION_MAJOR(version) ((version) / 1000)
#define VERSION_MINOR(version) ((version) % 1000 / 10)

/* ---- Why there is none ------------------------------------------------- */

/* X(code, what it means and what to do) */
#define REASON_LIST(X)                                                         \
    X(cudaErrorNoDevice,                                                       \
      "the NVIDIA driver shows no GPU: is one there (nvidia-smi -L), does "    \
      "CUDA_VISIBLE_DEVICES hide it, and does the container have it (docker "  \
      "run --gpus all)?")                                                      \
    X(cudaErrorStubLibrary,                                                    \
      "the libcuda.so.1 that was found is the toolkit's stub: take the "       \
      "folder stubs out of LD_LIBRARY_PATH, or install the NVIDIA driver")     \
    X(cudaErrorSystemNotReady,                                                 \
      "the GPUs are not ready: on machines with NVSwitch, start "              \
      "nvidia-fabricmanager")                                                  \
    X(cudaErrorSystemDriverMismatch,                                           \
      "the NVIDIA driver's kernel module and libcuda.so.1 are of different "   \
      "versions: restart after the update, or reload the module")              \
    X(cudaErrorCompatNotSupportedOnDevice,                                     \
      "the CUDA compatibility libraries do not support this GPU: take them "   \
      "out of LD_LIBRARY_PATH, or install a newer NVIDIA driver")              \
    X(cudaErrorInitializationError,                                            \
      "the NVIDIA driver does not start: is its kernel module loaded "         \
      "(nvidia-smi), and may this user open /dev/nvidia*?")                    \
    X(cudaErrorOperatingSystem,                                                \
      "the NVIDIA driver cannot use the operating system: is its kernel "      \
      "module loaded (nvidia-smi), and may this user open /dev/nvidia*?")

static const struct {
    cudaError_t code;
    const char *text;
} reasons[] = {
#define REASON_ENTRY(code, text) { code, text },
    REASON_LIST(REASON_ENTRY)
#undef REASON_ENTRY
};

/* The runtime says the same of no driver at all and of one that is too old. */
static void insufficient_driver(cellgate_error *error)
{
    int driver = 0;

    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        (void)cellgate_fail(error, CELLGATE_NO_DEVICE,
                            "no NVIDIA driver: libcuda.so.1 was not found; "
                            "install the driver (on Debian: apt-get install "
                            "nvidia-driver), and give it to a container "
                            "(docker run --gpus all)");
    else
        (void)cellgate_fail(error, CELLGATE_NO_DEVICE,
                            "the NVIDIA driver is too old: it is for CUDA "
                            "%d.%d, and this plugin needs %d.%d; install a "
                            "newer driver (580 or later for CUDA 13)",
                            VERSION_MAJOR(driver), VERSION_MINOR(driver),
                            VERSION_MAJOR(CUDART_VERSION),
                            VERSION_MINOR(CUDART_VERSION));
}

static cellgate_status none_found(cudaError_t code, cellgate_error *error)
{
    size_t i;

    (void)cellgate_fail(error, CELLGATE_NO_DEVICE,
                        "the CUDA driver fails: cudaGetDeviceCount answers %s "
                        "(%d); does nvidia-smi work?",
                        cudaGetErrorName(code), (int)code);
    if (code == cudaErrorInsufficientDriver)
        insufficient_driver(error);
    for (i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].code == code)
            (void)cellgate_fail(error, CELLGATE_NO_DEVICE, "%s",
                                reasons[i].text);
    error->vendor_code = code;
    (void)cudaGetLastError();
    return CELLGATE_NO_DEVICE;
}

/* ---- One GPU ----------------------------------------------------------- */

static void find_lack(struct cud_found *found)
{
    const int capability = 10 * found->major + found->minor;
    int mode = cudaComputeModeDefault;

    (void)cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, found->ordinal);
    if (capability < CUDA_ARCH_LEAST) {
        (void)snprintf(found->unusable, sizeof found->unusable,
                       "unusable: compute capability %d.%d is below %d.%d",
                       found->major, found->minor, CUDA_ARCH_LEAST / 10,
                       CUDA_ARCH_LEAST % 10);
        (void)snprintf(found->lacks, sizeof found->lacks,
                       "it has compute capability %d.%d, and the kernels are "
                       "built for %d.%d and newer; build with "
                       "--with-cuda-arch=%d if the toolkit still knows it",
                       found->major, found->minor, CUDA_ARCH_LEAST / 10,
                       CUDA_ARCH_LEAST % 10, capability);
    } else if (mode == cudaComputeModeProhibited) {
        (void)snprintf(found->unusable, sizeof found->unusable,
                       "unusable: compute mode Prohibited");
        (void)snprintf(found->lacks, sizeof found->lacks,
                       "its compute mode is Prohibited; set another one "
                       "(nvidia-smi -c DEFAULT)");
    }
}

static void describe_versions(struct cud_found *found,
                              const struct cud_cudnn *cudnn,
                              const struct cud_blaslt *blaslt)
{
    cellgate_device_description *of = &found->description;
    char version[24] = "no cuDNN";
    int driver = 0;

    (void)cudaDriverGetVersion(&driver);
    if (cudnn->version)
        (void)snprintf(version, sizeof version, "cuDNN %d.%d.%d",
                       cudnn->version / 10000, cudnn->version / 100 % 100,
                       cudnn->version % 100);
    (void)snprintf(of->driver, sizeof of->driver, "CUDA %d.%d, %s",
                   VERSION_MAJOR(driver), VERSION_MINOR(driver), version);
    if (found->unusable[0])
        (void)snprintf(of->driver, sizeof of->driver, "%s", found->unusable);
    (void)snprintf(of->identity, sizeof of->identity,
                   "cuda/%.90s/%d.%d/%d/%d/%d/%d/%zu/%s", of->name,
                   found->major, found->minor, found->multiprocessors, driver,
                   CUDART_VERSION, cudnn->version, blaslt->version,
                   PACKAGE_VERSION);
}

static cudaError_t describe(struct cud_found *found, int ordinal)
{
    cellgate_device_description *of = &found->description;
    struct cudaDeviceProp properties;
    cudaError_t code = cudaGetDeviceProperties(&properties, ordinal);

    if (code != cudaSuccess)
        return code;
    memset(found, 0, sizeof *found);
    found->ordinal = ordinal;
    found->major = properties.major;
    found->minor = properties.minor;
    found->multiprocessors = properties.multiProcessorCount;
    found->shared = (int)properties.sharedMemPerBlockOptin;
    found->cooperative = properties.cooperativeLaunch != 0;
    found->memory = properties.totalGlobalMem;
    of->struct_size = sizeof *of;
    (void)snprintf(of->name, sizeof of->name, "%.95s", properties.name);
    (void)snprintf(of->vendor, sizeof of->vendor, "NVIDIA");
    (void)snprintf(of->resource, sizeof of->resource, "pci:%04x:%02x:%02x.0",
                   (unsigned)properties.pciDomainID & 0xffffu,
                   (unsigned)properties.pciBusID & 0xffu,
                   (unsigned)properties.pciDeviceID & 0xffu);
    of->kind = CELLGATE_DEVICE_GPU;
    of->memory = found->memory;
    of->queue_depth = 2;
    find_lack(found);
    return cudaSuccess;
}

/* ---- All of them ------------------------------------------------------- */

static cellgate_status none_usable(const struct cud_found_list *list,
                                   cellgate_error *error)
{
    uint32_t i;

    for (i = 0; i < list->count; i++)
        if (!list->devices[i].lacks[0])
            return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_NO_DEVICE, "%s: %s",
                         list->devices[0].description.name,
                         list->devices[0].lacks);
}

void cud_describe_devices(struct cud_found_list *list,
                          const struct cud_cudnn *cudnn,
                          const struct cud_blaslt *blaslt)
{
    uint32_t i;

    for (i = 0; i < list->count; i++)
        describe_versions(&list->devices[i], cudnn, blaslt);
}

cellgate_status cud_find_devices(struct cud_found_list *list,
                                 cellgate_error *error)
{
    cudaError_t code;
    int count = 0, i;

    list->count = 0;
    code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count == 0)
        code = cudaErrorNoDevice;
    if (code != cudaSuccess)
        return none_found(code, error);
    for (i = 0; i < count && i < CUD_DEVICES_MAX; i++) {
        code = describe(&list->devices[list->count], i);
        if (code == cudaSuccess)
            list->count++;
        else
            (void)cud_fail(error, code, "cudaGetDeviceProperties",
                           "asking for a GPU's properties");
    }
    return list->count > 0 ? none_usable(list, error)
                           : (cellgate_status)error->status;
}
