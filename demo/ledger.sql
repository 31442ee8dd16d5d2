-- SPDX-License-Identifier: PostgreSQL
-- A small double-entry ledger. All of it that the puller can reach is its handler.
--
-- Amounts are whole cents in a bigint: there is nothing to round, and JSON has no number to be
-- misread on the way. Nothing in here keeps a payment from being posted twice: that is left to
-- inbox, so that the reconciliation shows whether it did.
CREATE EXTENSION inbox;

CREATE ROLE ledger_owner NOLOGIN;
CREATE ROLE puller LOGIN;
CREATE ROLE operator LOGIN;
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
DECLARE
    found_accounts integer;
BEGIN
    -- In one order everywhere, so that payments back and forth cannot deadlock.
    PERFORM FROM account a WHERE a.id IN (debtor, creditor) ORDER BY a.id FOR NO KEY UPDATE;
    GET DIAGNOSTICS found_accounts = ROW_COUNT;
    IF found_accounts <> 2 THEN
        RAISE EXCEPTION 'there is no account %', (SELECT string_agg(n::text, ', ')
                FROM unnest(ARRAY[debtor, creditor]) n WHERE n NOT IN (SELECT id FROM account))
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    INSERT INTO posting (payment, account, side, amount)
        VALUES (payment, debtor, 'debit', amount), (payment, creditor, 'credit', amount);
    UPDATE account a SET balance = a.balance + CASE a.id WHEN creditor THEN amount ELSE -amount END
        WHERE a.id IN (debtor, creditor);
END
$$;

\ir handler.sql
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

GRANT USAGE ON SCHEMA ledger TO puller, operator;
GRANT EXECUTE ON FUNCTION ledger.apply_payment TO puller, operator;
RESET ROLE;

-- Three attempts are enough here: with five, a dead letter takes half a minute.
SELECT inbox_grant('puller', 'puller'), inbox_grant('operator', 'operator'),
    inbox_configure(:'source', max_attempts => 3) \g /dev/null
