/* SPDX-License-Identifier: Apache-2.0 */
/* Why a session has no device, or not the one or the variant asked for: what
   there is instead, and what to do. */
#include "config.h"

#include "runtime/file_name.h"
#include "runtime/session/session.h"

/* Texts one behind the other; what no longer fits is left out. */
typedef struct list {
    char text[320];
    size_t count;
    bool full;
} list;

static void list_add(list *to, const char *separator, const char *text)
{
    size_t used = strlen(to->text);
    size_t size = sizeof to->text - sizeof ", ...";
    int length;

    if (to->full)
        return;
    length = snprintf(to->text + used, size - used, "%s%s",
                      to->count > 0 ? separator : "", text);
    to->full = length < 0 || (size_t)length >= size - used;
    if (to->full)
        snprintf(to->text + used, sizeof to->text - used, "%s...", separator);
    to->count++;
}

/* ---- No device at all --------------------------------------------------- */

static void list_candidates(const cellgate_session *session, list *reasons)
{
    for (size_t at = 0; at < session->candidate_count; at++) {
        const cg_candidate *candidate = &session->candidates[at];
        char text[sizeof candidate->failure + 64];

        snprintf(text, sizeof text, "%s: %s", cg_candidate_name(candidate),
                 candidate->failure);
        list_add(reasons, "; ", text);
    }
}

/* What was found in place of a device. */
static void list_plugins(const cg_device_table *table, list *reasons)
{
    cellgate_plugin_info plugin = { .struct_size = sizeof plugin };

    for (size_t at = 0;
         cg_device_table_plugin_get(table, at, &plugin) == CELLGATE_OK; at++) {
        bool offers = plugin.status == CELLGATE_OK && plugin.device_count > 0;
        char text[300];

        snprintf(text, sizeof text, "%s: %s", cg_file_name(plugin.path),
                 offers ? "left out by the configuration (unlisted = no, or "
                          "enabled = no)"
                        : plugin.reason);
        list_add(reasons, "; ", text);
    }
}

static void list_folders(const cg_device_table *table, list *folders)
{
    cellgate_path_info path = { .struct_size = sizeof path };

    for (size_t at = 0;
         cg_device_table_path_get(table, at, &path) == CELLGATE_OK; at++)
        list_add(folders, ", ", path.path);
}

cellgate_status cg_session_no_device(const cellgate_session *session,
                                     cellgate_error *error)
{
    list reasons = { .count = 0 }, folders = { .count = 0 };

    list_candidates(session, &reasons);
    if (reasons.count == 0)
        list_plugins(session->table, &reasons);
    if (reasons.count > 0)
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             "no device is usable: %s (`cellgate devices` says "
                             "more; the device 'host' needs no plugin)",
                             reasons.text);
    list_folders(session->table, &folders);
    return cellgate_fail(error, CELLGATE_NO_DEVICE,
                         "no device is usable: there is no plugin in %s; "
                         "install one, or name its folder in "
                         "CELLGATE_PLUGIN_PATH (the device 'host' needs none)",
                         folders.text);
}

/* ---- Not the one asked for ---------------------------------------------- */

cellgate_status cg_session_no_such_device(const cellgate_session *session,
                                          const char *name,
                                          cellgate_error *error)
{
    size_t count = cg_device_table_count(session->table);
    list names = { .count = 0 };

    for (size_t at = 0; at < count; at++)
        list_add(&names, ", ",
                 cg_device_name(cg_device_table_at(session->table, at)));
    list_add(&names, ", ", "host");
    return cellgate_fail(error, CELLGATE_NOT_FOUND,
                         "there is no device '%.64s'; there %s %s", name,
                         names.count == 1 ? "is" : "are", names.text);
}

static void list_variant(const cg_segment *segment, cellgate_variant *variant,
                         list *names)
{
    char quoted[sizeof variant->name + 2];

    variant->name[sizeof variant->name - 1] = '\0';
    snprintf(quoted, sizeof quoted, "'%s'", variant->name);
    if (variant->threads <= cg_device_thread_budget(segment->engine->device) &&
        strstr(names->text, quoted) == NULL)
        list_add(names, ", ", quoted);
}

/* What the device offers for the placement's segments, once each. */
static void list_variants(const cg_placement *placement, list *names)
{
    cellgate_error end = CELLGATE_ERROR_INIT; /* a plugin's error is not NULL */
    cellgate_variant variant;

    for (size_t at = 0; at < placement->partitions[0].count; at++) {
        const cg_segment *segment = placement->partitions[0].parts[at].segment;
        uint32_t index = 0;

        while (segment != NULL &&
               cg_segment_variant(segment, NULL, index++, &variant, &end) ==
                   CELLGATE_OK)
            list_variant(segment, &variant, names);
    }
}

cellgate_status cg_session_no_such_variant(const cellgate_session *session,
                                           const cg_placement *placement,
                                           cellgate_error *error)
{
    list names = { .count = 0 };

    list_variants(placement, &names);
    if (names.count == 0)
        return cellgate_fail(error, CELLGATE_NOT_FOUND,
                             "device '%s' has no variant '%.64s': it has none "
                             "for this model",
                             cg_placement_name(placement), session->variant);
    return cellgate_fail(error, CELLGATE_NOT_FOUND,
                         "device '%s' has no variant '%.64s' for this model; "
                         "it has %s",
                         cg_placement_name(placement), session->variant,
                         names.text);
}
