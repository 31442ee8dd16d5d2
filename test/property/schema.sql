-- SPDX-License-Identifier: PostgreSQL
--
-- A ledger in the schema of one trial, with a handler that does to a message what its payload
-- says. Nothing here is unique: it must be able to show that a message was applied twice.

CREATE TABLE effect (
    n bigint GENERATED ALWAYS AS IDENTITY,
    key text NOT NULL,
    intent int NOT NULL
);
CREATE TABLE leg (key text NOT NULL, account int NOT NULL, amount bigint NOT NULL);
CREATE INDEX ON leg (key);
CREATE TABLE closing (key text NOT NULL, step int NOT NULL);

-- Double entry: what one key books sums to zero, once it is complete.
CREATE FUNCTION check_balanced() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (SELECT sum(amount) FROM leg WHERE key = NEW.key) <> 0 THEN
        RAISE check_violation USING MESSAGE = 'the legs do not balance';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON leg DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_balanced();

-- Puts itself off until after SET CONSTRAINTS ALL IMMEDIATE: only the COMMIT itself fails.
CREATE FUNCTION check_closing() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.step = 1 THEN
        SET CONSTRAINTS ALL DEFERRED;
        INSERT INTO closing VALUES (NEW.key, 2);
    ELSE
        RAISE check_violation USING MESSAGE = 'refused at the last moment';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER closing AFTER INSERT ON closing DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION check_closing();

-- An intent that has "times" is in trouble that often only; its sequence counts through rollbacks.
CREATE FUNCTION trouble_now(payload jsonb) RETURNS text LANGUAGE plpgsql
    SET search_path FROM CURRENT AS $$
BEGIN
    IF payload ? 'times' THEN
        IF nextval(('tried_' || (payload->>'intent'))::regclass) > (payload->>'times')::int THEN
            RETURN '';
        END IF;
    END IF;
    RETURN coalesce(payload->>'trouble', '');
END $$;

CREATE FUNCTION post(key text, payload jsonb) RETURNS void LANGUAGE plpgsql
    SET search_path FROM CURRENT AS $$
#variable_conflict use_variable
DECLARE
    trouble text := trouble_now(payload);
    amount bigint := (payload->>'amount')::bigint;
BEGIN
    INSERT INTO effect (key, intent) VALUES (key, (payload->>'intent')::int);
    INSERT INTO leg VALUES (key, (payload->>'from')::int, -amount);
    IF trouble <> 'unbalanced' THEN
        INSERT INTO leg VALUES (key, (payload->>'to')::int, amount);
    END IF;
    CASE trouble
    WHEN '', 'unbalanced' THEN
    WHEN 'at commit' THEN
        INSERT INTO closing VALUES (key, 1);
    WHEN 'division' THEN
        PERFORM amount / (amount - amount);
    WHEN 'cast' THEN
        PERFORM key::date;
    WHEN 'no table' THEN
        EXECUTE 'SELECT FROM no_such_table';
    WHEN 'no function' THEN
        EXECUTE 'SELECT no_such_function()';
    WHEN 'no schema' THEN
        EXECUTE 'CREATE TABLE no_such_schema.t ()';
    WHEN 'commit' THEN
        COMMIT;
    ELSE
        RAISE EXCEPTION 'trouble' USING ERRCODE = trouble;
    END CASE;
END $$;
