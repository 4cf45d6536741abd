/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a store. Private to store*.c. */
#ifndef CELLGATE_RUNTIME_COST_STORE_FILE_H
#define CELLGATE_RUNTIME_COST_STORE_FILE_H

#include <sqlite3.h>

#include "runtime/cost/store.h"

/* Fields that candidates are compared by, in the order of the table. */
#define CG_CANDIDATE_FIELDS 7
extern const char *const cg_candidate_fields[CG_CANDIDATE_FIELDS];
/* The texts of those fields. */
void cg_candidate_texts(const cg_cost_candidate *candidate,
                        const char *texts[CG_CANDIDATE_FIELDS]);

#define CG_STORE_NOTES 8

struct cg_cost_store {
    sqlite3 *user; /* a file, or in memory; never NULL */
    sqlite3 *site; /* NULL: none */
    bool keeps;
    char *pending; /* the user's file, which is not there yet */
    char *notes[CG_STORE_NOTES];
    size_t note_count;
};

CELLGATE_PRINTF_LIKE(2, 3)
void cg_cost_store_add_note(cg_cost_store *store, const char *format, ...);

/* Opens both as far as they can be opened; NO_MEMORY only. */
cellgate_status cg_cost_store_open_files(cg_cost_store *store,
                                         const char *user_path,
                                         const char *site_path,
                                         cellgate_error *error);

/* Makes the user's file before the first write; a note where that fails. */
void cg_cost_store_make_file(cg_cost_store *store);

bool cg_cost_store_execute(sqlite3 *file, const char *text);

/* A transaction that writes: waits for other writers, and readers meanwhile. */
bool cg_cost_store_begin(sqlite3 *file);
/* Ends it: commits it, or, where it was not `done` or cannot be, undoes it and
   says why. */
cellgate_status cg_cost_store_settle(sqlite3 *file, bool done,
                                     const char *doing, cellgate_error *error);

/* Whether it has the tables once and limits: files of the first layout that
   cannot be written lack them. */
bool cg_cost_store_has_facts(sqlite3 *file);

/* Fills *error from what SQLite says: NO_MEMORY, BUSY or IO. */
cellgate_status cg_cost_store_fail(sqlite3 *file, const char *doing,
                                   cellgate_error *error);

/* ---- store.c: statements ------------------------------------------------ */

/* What candidates are compared by, as a condition over parameters 1 to 7. */
#define CG_CANDIDATE_IS                                                        \
    "c.plugin = ?1 AND c.build = ?2 AND c.identity = ?3 AND c.settings = ?4 "  \
    "AND c.variant = ?5 AND c.numeric = ?6 AND c.host = ?7"
/* The candidate and the structure of what is written, parameters 1 to 8. */
#define CG_BOTH                                                                \
    "FROM candidate c, structure s WHERE " CG_CANDIDATE_IS " AND s.text = ?8"

/* With the candidate as parameters 1 to 7 and, unless NULL, the structure as
   the eighth; their texts have to outlive it. NULL: it failed. */
sqlite3_stmt *cg_cost_store_prepare(sqlite3 *file, const char *text,
                                    const cg_cost_candidate *candidate,
                                    const char *structure);
/* A column's text; "" where there is none. */
const char *cg_cost_store_text(sqlite3_stmt *row, int column);
/* Runs a statement without results to its end. */
bool cg_cost_store_finish(sqlite3_stmt *statement);
/* Thousandths: what is compared is a whole number. */
int64_t cg_cost_store_fill(double fill);
/* Whether a point is one that may be put, or was; likewise seconds and a shape.
   What is beyond was never measured. */
bool cg_cost_store_sane(const cg_cost_point *point);
bool cg_cost_store_sane_seconds(double seconds);
bool cg_cost_store_sane_shape(int64_t batch, int64_t steps);

/* ---- store_write.c: within a transaction -------------------------------- */

/* Makes rows of the candidate and of the structure. */
bool cg_cost_store_name_both(sqlite3 *file, const cg_cost_candidate *candidate,
                             const char *structure);
bool cg_cost_store_put_point(sqlite3 *file, const cg_cost_candidate *candidate,
                             const char *structure, cg_regime regime,
                             const cg_cost_point *point);

/* Puts something of a candidate and a structure into a file. */
typedef bool cg_cost_store_adder(sqlite3 *file,
                                 const cg_cost_candidate *candidate,
                                 const char *structure, const void *what);

/* Names both in the user's file, and adds it: one transaction. */
cellgate_status cg_cost_store_keep(cg_cost_store *store,
                                   const cg_cost_candidate *candidate,
                                   const char *structure,
                                   cg_cost_store_adder *add, const void *what,
                                   const char *doing, cellgate_error *error);

/* ---- store_facts.c: within a transaction -------------------------------- */

bool cg_cost_store_add_once(sqlite3 *file, const cg_cost_candidate *candidate,
                            const char *structure, const cg_cost_once *once);
bool cg_cost_store_add_limit(sqlite3 *file, const cg_cost_candidate *candidate,
                             const char *structure, const cg_cost_limit *limit);
/* A run at that shape shows that limits at it and below are none. */
bool cg_cost_store_lift_limits(sqlite3 *file,
                               const cg_cost_candidate *candidate,
                               const char *structure,
                               const cg_cost_shape *shape);

#endif
