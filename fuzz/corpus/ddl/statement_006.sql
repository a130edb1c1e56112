CREATE TABLE IF NOT EXISTS `my-db`.`t` (
  -- the key
  `order` STRING NOT NULL COMMENT 'it''s', /* more */ v DECIMAL(12, 2),
  CONSTRAINT pk PRIMARY KEY (`order`) NOT ENFORCED
)
COMMENT 'a table'
WITH ('table.replication.factor' = '3', 'table.log.format' = 'ARROW', 'table.log.ttl' = '7d')