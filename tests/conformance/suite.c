/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/suite.h"

const suite_group suite_groups[] = {
    { "table", "entry, table and keys", 1, group_table },
    { "devices", "description of the device", 0, group_devices },
    { "variants", "lists of variants", 0, group_variants },
    { "growth", "older and newer structs", 0, group_growth },
    { "shapes", "minimum profile: edge and random shapes", 0, group_shapes },
    { "lengths", "full, ragged, with zeros, all zero", 0, group_lengths },
    { "layouts", "batch-major, time-major, padded", 0, group_layouts },
    { "outputs", "every set of outputs", 0, group_outputs },
    { "attributes", "directions, peepholes, clip ...", 0, group_attributes },
    { "activations", "every pair of activations", 0, group_activations },
    { "values", "large, saturating and denormal", 0, group_values },
    { "nonfinite", "NaN and infinity in one row", 0, group_nonfinite },
    { "ops", "dense, embedding, softmax", 0, group_ops },
    { "chains", "stacks and mixed chains", 0, group_chains },
    { "bounds", "reads and writes beyond the end", 0, group_bounds },
    { "pieces", "state carried in pieces", 0, group_pieces },
    { "plans", "one plan for many shapes", 0, group_plans },
    { "threads", "several plans at once", 0, group_threads },
    { "weights", "two sets of weights", 0, group_weights },
    { "lifecycle", "made and freed many times", 0, group_lifecycle },
    { "resident", "state that stays on the device", 0, group_resident },
    { "optional", "breakdown, host memory", 0, group_optional },
    { NULL, NULL, 0, NULL },
};

/* ---- Settings ----------------------------------------------------------- */

static const cellgate_key *find_key(const plugin_file *plugin, const char *name)
{
    for (size_t i = 0; i < plugin->host.key_count; i++)
        if (strcmp(plugin->host.keys[i].name, name) == 0)
            return &plugin->host.keys[i];
    return NULL;
}

/* Checks each --set against the plugin's keys and makes its value canonical. */
static int check_settings(suite *s)
{
    for (size_t i = 0; i < s->options->setting_count; i++) {
        host_setting *setting = &s->options->settings[i];
        const cellgate_key *key = find_key(&s->plugin, setting->key);
        char canonical[512], *copy;
        if (key == NULL) {
            (void)fprintf(stderr,
                          "the plugin has no key '%s' (its keys are declared "
                          "in its table)\n",
                          setting->key);
            return -1;
        }
        if (!host_canonical(key, setting->value, canonical, sizeof canonical)) {
            (void)fprintf(stderr, "'%s' is no value for %s (%s%s%s)\n",
                          setting->value, setting->key, key->help,
                          key->choices != NULL ? "; one of " : "",
                          key->choices != NULL ? key->choices : "");
            return -1;
        }
        copy = strdup(canonical);
        if (copy == NULL)
            return -1;
        free(setting->value);
        setting->value = copy;
    }
    s->settings.list = s->options->settings;
    s->settings.count = s->options->setting_count;
    return 0;
}

/* ---- Selection ---------------------------------------------------------- */

static int matches(const suite *s, const char *group, const char *what)
{
    const char *filter = s->options->filter;

    if (filter == NULL)
        return 1;
    for (const suite_group *g = suite_groups; g->name != NULL; g++)
        if (strcmp(g->name, filter) == 0)
            return strcmp(group, filter) == 0;
    return regexec(&s->filter, group, 0, NULL, 0) == 0 ||
           regexec(&s->filter, what, 0, NULL, 0) == 0;
}

/* Whether there is time for one more; what is not tried is told. */
static int in_time(suite *s, const char *group)
{
    if (s->options->seconds <= 0 || suite_clock(s) < s->end)
        return 1;
    report_skipped(s->report, group, NULL, "not tried: the time was over");
    s->untried++;
    return 0;
}

int suite_wants_check(suite *s, const char *group, const char *what)
{
    if (!matches(s, group, what))
        return 0;
    if (s->options->list)
        printf("%s: %s\n", group, what);
    return !s->options->list && !s->options->variants && in_time(s, group);
}

int suite_wants(suite *s, const test_case *c)
{
    char text[1000];

    case_describe(c, text, sizeof text);
    if (!matches(s, c->group, text))
        return 0;
    if (s->options->list)
        printf("%s\n", text);
    else if (s->options->variants)
        variants_note(s, c);
    return !s->options->list && !s->options->variants && in_time(s, c->group);
}

/* -1: the filter is no regular expression, and that is told. */
static int compile_filter(suite *s)
{
    char why[200];
    int code;

    if (s->options->filter == NULL)
        return 0;
    code = regcomp(&s->filter, s->options->filter, REG_EXTENDED | REG_NOSUB);
    s->filters = code == 0;
    if (code == 0)
        return 0;
    (void)regerror(code, &s->filter, why, sizeof why);
    (void)fprintf(stderr, "cellgate conform: --filter '%s': %s\n",
                  s->options->filter, why);
    return -1;
}

/* ---- Running ------------------------------------------------------------ */

double suite_clock(suite *s)
{
    return 1e-9 * (double)s->plugin.host.table.clock(&s->plugin.host);
}

static void run_groups(suite *s, int once)
{
    for (const suite_group *g = suite_groups; g->name != NULL; g++)
        if (g->once == once)
            g->run(s);
}

/* Tests one device; -1 when it can't be tested at all. */
static int run_device(suite *s, uint32_t index)
{
    const cellgate_plugin *table = &s->plugin.table;
    cellgate_error error = CELLGATE_ERROR_INIT;

    s->device_index = index;
    memset(&s->description, 0, sizeof s->description);
    s->description.struct_size = sizeof s->description;
    if (table->device_describe(s->plugin.instance, index, &s->description,
                               &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "device %u: cannot be described: %s\n", index,
                      error.text);
        return -1;
    }
    report_device(s->report, index, s->description.name);
    if (table->device_open(s->plugin.instance, index, &s->settings, &s->device,
                           &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "device %u: cannot be opened: %s\n", index,
                      error.text);
        return -1;
    }
    run_groups(s, 0);
    if (s->options->variants)
        variants_print(s);
    table->device_close(s->device);
    s->device = NULL;
    return 0;
}

static int run_devices(suite *s)
{
    uint32_t count = s->plugin.table.device_count(s->plugin.instance);
    int tested = 0;

    if (s->options->device >= (int64_t)count || count == 0) {
        (void)fprintf(stderr, "the plugin offers %u devices%s\n", count,
                      count == 0 ? "; there is nothing to test" : "");
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (s->options->device >= 0 && s->options->device != (int64_t)i)
            continue;
        if (run_device(s, i) != 0)
            return -1;
        tested++;
    }
    return tested > 0 ? 0 : -1;
}

/* A variant that was named has to have run. */
static void check_variant_ran(suite *s)
{
    const char *variant = s->options->variant;

    if (variant != NULL && report_ran(s->report, variant) == 0)
        report_failed(s->report, "variants", variant, "--variant",
                      "no case ran in this variant");
}

static int run_suite(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;

    report_plugin(s->report, s->options->path, table->name, table->version,
                  table->build, s->options->seed, s->options->full);
    s->end = suite_clock(s) + s->options->seconds;
    run_groups(s, 1);
    if (run_devices(s) != 0)
        return SUITE_UNUSABLE;
    plugin_file_close(&s->plugin);
    check_variant_ran(s);
    if (host_outstanding(&s->plugin.host) != 0)
        report_failed(s->report, "lifecycle", NULL, "after finish()",
                      "%lld allocations were never released",
                      (long long)host_outstanding(&s->plugin.host));
    report_print(s->report);
    return report_failures(s->report) > 0 || s->untried > 0 ? 1 : 0;
}

static int list_variants(suite *s)
{
    int status = run_devices(s) == 0 ? 0 : SUITE_UNUSABLE;

    plugin_file_close(&s->plugin);
    return status;
}

static int list_suite(suite *s)
{
    for (const suite_group *g = suite_groups; g->name != NULL; g++)
        g->run(s);
    return 0;
}

int suite_main(const suite_options *options)
{
    suite s = { .options = options };
    char why[700];
    int status = 2;

    if (compile_filter(&s) != 0)
        return status;
    if (!options->list)
        s.report = report_create(options->json);
    if (options->list) {
        status = list_suite(&s);
    } else if (s.report == NULL) {
        status = SUITE_NO_MEMORY;
    } else if (plugin_file_open(&s.plugin, options->path, options->threads,
                                options->verbose, why, sizeof why) != 0) {
        (void)fprintf(stderr, "cellgate conform: %s: %s\n", options->path, why);
        status = SUITE_UNUSABLE;
    } else if (check_settings(&s) == 0) {
        status = options->variants ? list_variants(&s) : run_suite(&s);
    }
    report_destroy(s.report);
    if (s.filters)
        regfree(&s.filter);
    return status;
}
