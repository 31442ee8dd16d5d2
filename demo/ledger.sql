-- SPDX-License-Identifier: PostgreSQL
-- A small double-entry ledger, and the handler that is all of it the puller can reach.
--
-- Amounts are whole cents in a bigint: there is nothing to round, and JSON has no number to be
-- misread on the way. Nothing in here keeps a payment from being posted twice: that is left to
-- inbox, so that the reconciliation shows whether it did.
CREATE EXTENSION inbox;

CREATE ROLE ledger_owner NOLOGIN;
CREATE ROLE puller LOGIN;
CREATE SCHEMA ledger AUTHORIZATION ledger_owner;

SET ROLE ledger_owner;

CREATE TABLE ledger.account (
    id integer PRIMARY KEY,
    name text NOT NULL,
    balance bigint NOT NULL DEFAULT 0
);
COMMENT ON COLUMN ledger.account.balance IS 'in cents: the sum of its postings, kept up to date';

CREATE TABLE ledger.posting (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payment text NOT NULL,
    account integer NOT NULL REFERENCES ledger.account,
    side text NOT NULL CHECK (side IN ('debit', 'credit')),
    amount bigint NOT NULL CHECK (amount > 0),
    posted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON ledger.posting (payment);
COMMENT ON COLUMN ledger.posting.amount IS 'in cents';

-- Deferred, because a payment is only balanced once both of its sides are there. That is after the
-- handler has returned, so it needs the rights of the owner for itself.
CREATE FUNCTION ledger.check_balanced() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledger, pg_temp
AS $$
BEGIN
    IF (SELECT sum(CASE side WHEN 'debit' THEN amount ELSE -amount END)
        FROM posting WHERE payment = NEW.payment) <> 0
    THEN
        RAISE EXCEPTION 'payment % does not balance', NEW.payment
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT OR UPDATE ON ledger.posting
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger.check_balanced();

CREATE FUNCTION ledger.post(payment text, debtor integer, creditor integer, amount bigint)
    RETURNS void
    LANGUAGE plpgsql SET search_path = ledger, pg_temp
AS $$
BEGIN
    INSERT INTO posting (payment, account, side, amount)
        VALUES (payment, debtor, 'debit', amount), (payment, creditor, 'credit', amount);
    -- In one order everywhere, so that payments back and forth cannot deadlock.
    PERFORM FROM account a WHERE a.id IN (debtor, creditor) ORDER BY a.id FOR NO KEY UPDATE;
    UPDATE account a SET balance = a.balance + CASE a.id WHEN creditor THEN amount ELSE -amount END
        WHERE a.id IN (debtor, creditor);
END
$$;

-- The handler runs as the owner of the ledger, whoever calls it: the puller needs no right on any
-- table. Whatever is wrong with a payment is an error, and an error undoes all of it.
CREATE FUNCTION ledger.apply_payment(key text, payload jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledger, pg_temp
AS $$
DECLARE
    debtor integer := payload ->> 'from';
    creditor integer := payload ->> 'to';
    amount bigint := payload ->> 'cents';
BEGIN
    IF debtor IS NULL OR creditor IS NULL OR amount IS NULL OR debtor = creditor THEN
        RAISE EXCEPTION 'not a payment from one account to another: %', payload
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM post(key, debtor, creditor, amount);
END
$$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ledger FROM PUBLIC;

-- Fifty customers with 10,000.00 each, owed by the bank's own account.
INSERT INTO ledger.account (id, name)
    SELECT g, CASE g WHEN 0 THEN 'the bank' ELSE 'customer ' || g END
    FROM generate_series(0, 50) g;
DO $$
BEGIN
    PERFORM ledger.post('opening ' || g, 0, g, 1000000) FROM generate_series(1, 50) g;
END
$$;

GRANT USAGE ON SCHEMA ledger TO puller;
GRANT EXECUTE ON FUNCTION ledger.apply_payment TO puller;
RESET ROLE;

SELECT inbox_grant('puller', 'puller') \g /dev/null
