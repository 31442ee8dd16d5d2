-- SPDX-License-Identifier: PostgreSQL
--
-- A ledger of accounts. Nothing in it is unique but the accounts: it must be able to show that a
-- transfer was booked twice.

CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO account SELECT i, 1000000 FROM generate_series(1, 50) AS i;
CREATE TABLE effect (
    n bigint GENERATED ALWAYS AS IDENTITY,
    key text NOT NULL,
    intent int NOT NULL
);
CREATE INDEX ON effect (key);
CREATE TABLE closing (key text NOT NULL, step int NOT NULL);

-- Step 1 fails at SET CONSTRAINTS ALL IMMEDIATE, step 2 puts itself off and fails at COMMIT.
CREATE FUNCTION check_closing() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.step = 2 THEN
        SET CONSTRAINTS ALL DEFERRED;
        INSERT INTO closing VALUES (NEW.key, 1);
        RETURN NULL;
    END IF;
    RAISE check_violation USING MESSAGE = 'refused at the last moment';
END $$;
CREATE CONSTRAINT TRIGGER closing AFTER INSERT ON closing DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_closing();

CREATE FUNCTION book(key text, payload jsonb) RETURNS void LANGUAGE plpgsql
    SET search_path FROM CURRENT AS $$
#variable_conflict use_variable
DECLARE
    trouble text := coalesce(payload->>'trouble', '');
    amount bigint := (payload->>'amount')::bigint;
BEGIN
    INSERT INTO effect (key, intent) VALUES (key, (payload->>'intent')::int);
    UPDATE account SET balance = balance - amount WHERE id = (payload->>'from')::int;
    UPDATE account SET balance = balance + amount WHERE id = (payload->>'to')::int;
    CASE trouble
    WHEN '' THEN
    WHEN 'deferred' THEN
        INSERT INTO closing VALUES (key, 1);
    WHEN 'at commit' THEN
        INSERT INTO closing VALUES (key, 2);
    ELSE
        RAISE EXCEPTION 'trouble' USING ERRCODE = trouble;
    END CASE;
END $$;
