// SPDX-License-Identifier: Apache-2.0
// The table of options in docs/tables.md is that of the code. MINK_PRINT_OPTIONS=1 prints what it should be.
#include "table_testing.h"

#include <stdlib.h>

static char *read_doc(void) {
    char path[4096];
    const char *here = strstr(__FILE__, "tests/unit/table/");
    snprintf(path, sizeof path, "%.*sdocs/tables.md", (int)(here - __FILE__), __FILE__);
    FILE *f = fopen(path, "rb");
    if (f == NULL) fail_msg("cannot open %s", path);
    char *text = mem_zalloc(1 << 20);
    size_t size = fread(text, 1, (1 << 20) - 1, f);
    assert_in_range(size, 1, (1 << 20) - 2);
    fclose(f);
    return text;
}

static void put_row(struct buffer *out, const struct table_option_info *o) {
    char values[512] = "";
    switch (o->kind) {
    case OPTION_INT: snprintf(values, sizeof values, "%lld to %lld", (long long)o->min, (long long)o->max); break;
    case OPTION_BYTES: snprintf(values, sizeof values, "bytes, or like `10 gb`"); break;
    case OPTION_DURATION: snprintf(values, sizeof values, "like `12 h`"); break;
    case OPTION_BOOL: snprintf(values, sizeof values, "true, false"); break;
    case OPTION_CHOICE: snprintf(values, sizeof values, "%s", o->choices); break;
    case OPTION_TEXT: snprintf(values, sizeof values, "text"); break;
    case OPTION_COLUMN: snprintf(values, sizeof values, "a column"); break;
    case OPTION_COLUMNS: snprintf(values, sizeof values, "columns"); break;
    }
    buffer_printf(out, "| `%s` | %s | %s%s | %s | %s |\n", o->key, o->default_text, o->meaning, o->primary_key_only ? " (primary-key tables)" : "", values, o->changeable ? "yes" : "no");
}

static void test_the_documented_options_are_those_of_the_code(void **state) {
    struct buffer rows;
    size_t count;
    const struct table_option_info *options = table_options(&count);
    buffer_init(&rows, 1 << 20);
    for (size_t i = 0; i < count; i++) put_row(&rows, &options[i]);
    if (getenv("MINK_PRINT_OPTIONS")) printf("%s", buffer_string(&rows));
    char *doc = read_doc();
    const char *begin = strstr(doc, "| option | default |");
    assert_non_null(begin);
    begin = strchr(strchr(begin, '\n') + 1, '\n') + 1; // behind the line below the heads
    const char *end = strstr(begin, "\n\n");
    assert_non_null(end);
    assert_int_equal(end + 1 - begin, rows.size);
    assert_memory_equal(begin, rows.data, rows.size);
    mem_free(doc);
    buffer_deinit(&rows);
}

// Every default that stands as a value is one that the option takes.
static void test_defaults_are_values(void **state) {
    static const char *const words[] = {"the server's", "none", "by unit", "by table", "by function", "last row", "commit time", "UTC"};
    size_t count;
    const struct table_option_info *options = table_options(&count);
    for (size_t i = 0; i < count; i++) {
        const struct table_option_info *o = &options[i];
        bool word = strchr(o->default_text, ';') || strstr(o->default_text, "the only") || strstr(o->default_text, "primary key");
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) word |= strcmp(o->default_text, words[k]) == 0;
        if (word || strchr(o->key, '<')) continue;
        char text[400];
        struct error why = {0};
        struct ddl ddl;
        snprintf(text, sizeof text, "CREATE TABLE d.t (id INT, p STRING%s) PARTITIONED BY (p) WITH ('%s' = '%s')", o->primary_key_only ? ", PRIMARY KEY (id, p)" : "", o->key, o->default_text);
        assert_fine(test_parse(text, &ddl, &why));
        ddl_deinit(&ddl);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_documented_options_are_those_of_the_code), cmocka_unit_test(test_defaults_are_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
