CREATE TABLE my_db.my_log_table (
  order_id BIGINT,
  item_id BIGINT,
  amount INT,
  address STRING
);