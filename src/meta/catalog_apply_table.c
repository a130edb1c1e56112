// SPDX-License-Identifier: Apache-2.0
// Applying commands of databases, tables and partitions.
#include "meta/apply_internal.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

// The rules for names are those of the table model and were checked before; here it counts that a checkpoint can hold them.
static bool name_fits(const char *name) { return name[0] && strlen(name) <= CATALOG_NAME_MAX; }

void apply_create_database(struct apply *a, const Mink__CreateDatabase *m) {
    bool found;
    uint32_t at = sorted_find(&a->c->databases, m->name, compare_database, &found);
    if (found && m->if_not_exists) {
        a->result->existed = true;
        return;
    }
    if (!name_fits(m->name)) REFUSE(a, MINK_INVALID, "BAD_NAME", "a database name has 1 to %d bytes", CATALOG_NAME_MAX);
    if (found) REFUSE(a, MINK_EXISTS, "DATABASE_EXISTS", "database %s exists already", m->name);
    struct database *d = mem_new(struct database);
    d->name = mem_strdup(m->name);
    d->comment = mem_strdup(m->comment);
    sorted_insert(&a->c->databases, at, d);
}

static void drop_table_entry(struct catalog *c, struct table *t) {
    bool found;
    const struct table_def *def = t->versions[t->version_count - 1];
    if (def->partition_by_count == 0) catalog_drop_streams(c, t->stream_base, def->bucket_num);
    for (uint32_t i = 0; i < t->partitions.count; i++) {
        const struct partition *p = t->partitions.items[i];
        catalog_drop_streams(c, p->stream_base, p->bucket_count);
    }
    sorted_remove(&c->tables_by_id, sorted_find(&c->tables_by_id, &t->id, compare_table_id, &found));
    struct table_key key = {t->database, t->name};
    sorted_remove(&c->tables, sorted_find(&c->tables, &key, compare_table, &found));
    catalog_free_table(t);
}

void apply_drop_database(struct apply *a, const Mink__DropDatabase *m) {
    bool found;
    uint32_t at = sorted_find(&a->c->databases, m->name, compare_database, &found), tables = 0;
    if (!found && m->if_exists) {
        a->result->existed = true;
        return;
    }
    if (!found) REFUSE(a, MINK_NOT_FOUND, "DATABASE_NOT_FOUND", "database %s does not exist", m->name);
    for (uint32_t i = 0; i < a->c->tables.count; i++) tables += strcmp(((struct table *)a->c->tables.items[i])->database, m->name) == 0;
    if (tables && !m->cascade) {
        a->result->code = error_set(&a->result->error, MINK_CONFLICT, "DATABASE_NOT_EMPTY", "database %s holds %u tables", m->name, tables);
        error_hint(&a->result->error, "drop them first, or drop with cascade");
        return;
    }
    for (uint32_t i = a->c->tables.count; i-- > 0;) {
        struct table *t = a->c->tables.items[i];
        if (strcmp(t->database, m->name) == 0) drop_table_entry(a->c, t);
    }
    catalog_free_database(a->c->databases.items[at]);
    sorted_remove(&a->c->databases, at);
}

// A proposer sends only what it could parse itself, so a definition that cannot be parsed comes from a newer version.
static struct table_def *definition_of(struct apply *a, const char *json) {
    struct table_def *def;
    if (command_parse_definition(json, &def, a->fatal_error) == MINK_OK) return def;
    error_context(a->fatal_error, "command %" PRIu64 " of the log", a->seq);
    error_hint(a->fatal_error, "a newer node wrote it: upgrade this one");
    if (a->fatal_error) a->fatal_error->code = MINK_UNSUPPORTED;
    a->fatal = MINK_UNSUPPORTED;
    return NULL;
}

void apply_create_table(struct apply *a, const Mink__CreateTable *m) {
    struct table_def *def = definition_of(a, m->definition);
    bool found;
    if (!def) return;
    struct table_key key = {def->database, def->name};
    uint32_t at = sorted_find(&a->c->tables, &key, compare_table, &found);
    if (found && m->if_not_exists) {
        a->result->existed = true;
        a->result->id = ((struct table *)a->c->tables.items[at])->id;
    } else if (found) {
        a->result->code = error_set(&a->result->error, MINK_EXISTS, "TABLE_EXISTS", "table %s.%s exists already", def->database, def->name);
    } else if (!catalog_database(a->c, def->database)) {
        a->result->code = error_set(&a->result->error, MINK_NOT_FOUND, "DATABASE_NOT_FOUND", "database %s does not exist", def->database);
        error_hint(&a->result->error, "create it first: mink db create %s", def->database);
    } else {
        struct table *t = mem_new(struct table);
        t->id = a->c->next_table_id++;
        t->created_position = t->altered_position = a->seq;
        t->database = mem_strdup(def->database);
        t->name = mem_strdup(def->name);
        t->versions = mem_new_array(struct table_def *, 1);
        t->versions[t->version_count++] = table_def_ref(def);
        sorted_insert(&a->c->tables, at, t);
        sorted_insert(&a->c->tables_by_id, a->c->tables_by_id.count, t);
        if (def->partition_by_count == 0) catalog_add_streams(a->c, t->id, 0, def->bucket_num, &t->stream_base);
        a->result->id = t->id;
    }
    table_def_unref(def);
}

// What decides where rows go stays for a table's life: streams and rows are laid out by it.
static bool same_layout(const struct table_def *a, const struct table_def *b) {
    if (strcmp(a->database, b->database) != 0 || strcmp(a->name, b->name) != 0) return false;
    if (a->bucket_num != b->bucket_num || a->bucketing != b->bucketing) return false;
    if (a->partition_by_count != b->partition_by_count || a->bucket_key_count != b->bucket_key_count || a->primary_key_count != b->primary_key_count) return false;
    for (uint32_t i = 0; i < a->partition_by_count; i++)
        if (a->columns[a->partition_by[i]].id != b->columns[b->partition_by[i]].id) return false;
    for (uint32_t i = 0; i < a->bucket_key_count; i++)
        if (a->columns[a->bucket_key[i]].id != b->columns[b->bucket_key[i]].id) return false;
    for (uint32_t i = 0; i < a->primary_key_count; i++)
        if (a->columns[a->primary_key[i]].id != b->columns[b->primary_key[i]].id) return false;
    return true;
}

void apply_alter_table(struct apply *a, const Mink__AlterTable *m) {
    struct table *t = catalog_table_with_id(a->c, m->table_id);
    if (!t) REFUSE(a, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %" PRIu64 " does not exist any more", m->table_id);
    struct table_def *current = t->versions[t->version_count - 1];
    if (t->altered_position != m->expected_position) REFUSE(a, MINK_CONFLICT, "TABLE_CHANGED", "table %s.%s has been altered meanwhile", t->database, t->name);
    struct table_def *def = definition_of(a, m->definition);
    if (!def) return;
    if (!same_layout(current, def)) {
        table_def_unref(def);
        REFUSE(a, MINK_INVALID, "NOT_CHANGEABLE", "name, buckets, partition columns and keys of %s.%s cannot be changed", t->database, t->name);
    }
    if (def->schema_id != current->schema_id && def->schema_id != current->schema_id + 1) {
        a->result->code = error_set(&a->result->error, MINK_INVALID, "BAD_SCHEMA_ID", "schema %u of table %s.%s cannot follow schema %u", def->schema_id, t->database, t->name, current->schema_id);
        table_def_unref(def);
        return;
    }
    t->altered_position = a->seq;
    if (def->schema_id == current->schema_id) { // options only
        table_def_unref(current);
        t->versions[t->version_count - 1] = def;
    } else {
        t->versions = mem_realloc(t->versions, (t->version_count + 1) * sizeof *t->versions);
        t->versions[t->version_count++] = def;
    }
    a->result->id = t->id;
}

void apply_drop_table(struct apply *a, const Mink__DropTable *m) {
    struct table *t = catalog_table_named(a->c, m->database, m->name);
    if (!t && m->if_exists) {
        a->result->existed = true;
        return;
    }
    if (!t) REFUSE(a, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %s.%s does not exist", m->database, m->name);
    a->result->id = t->id;
    drop_table_entry(a->c, t);
}

void apply_create_partition(struct apply *a, const Mink__CreatePartition *m) {
    struct table *t = catalog_table_with_id(a->c, m->table_id);
    bool found;
    if (!t) REFUSE(a, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %" PRIu64 " does not exist any more", m->table_id);
    const struct table_def *def = t->versions[t->version_count - 1];
    if (def->partition_by_count == 0) REFUSE(a, MINK_INVALID, "NOT_PARTITIONED", "table %s.%s is not partitioned", t->database, t->name);
    uint32_t at = sorted_find(&t->partitions, m->name, compare_partition, &found);
    if (found && m->if_not_exists) {
        a->result->existed = true;
        a->result->id = ((struct partition *)t->partitions.items[at])->id;
        return;
    }
    if (!name_fits(m->name)) REFUSE(a, MINK_INVALID, "BAD_NAME", "a partition name has 1 to %d bytes", CATALOG_NAME_MAX);
    if (found) REFUSE(a, MINK_EXISTS, "PARTITION_EXISTS", "partition %s of %s.%s exists already", m->name, t->database, t->name);
    struct partition *p = mem_new(struct partition);
    p->id = a->c->next_partition_id++;
    p->name = mem_strdup(m->name);
    p->bucket_count = def->bucket_num;
    catalog_add_streams(a->c, t->id, p->id, p->bucket_count, &p->stream_base);
    sorted_insert(&t->partitions, at, p);
    a->result->id = p->id;
}

void apply_drop_partition(struct apply *a, const Mink__DropPartition *m) {
    struct table *t = catalog_table_with_id(a->c, m->table_id);
    bool found = false;
    uint32_t at = t ? sorted_find(&t->partitions, m->name, compare_partition, &found) : 0;
    if (!found && m->if_exists) {
        a->result->existed = true;
        return;
    }
    if (!found) REFUSE(a, MINK_NOT_FOUND, "PARTITION_NOT_FOUND", "partition %s does not exist", m->name);
    struct partition *p = t->partitions.items[at];
    a->result->id = p->id;
    catalog_drop_streams(a->c, p->stream_base, p->bucket_count);
    sorted_remove(&t->partitions, at);
    catalog_free_partition(p);
}
