-- SPDX-License-Identifier: PostgreSQL
-- The handler runs as the owner of the ledger, whoever calls it: the puller needs no right on any
-- table. Whatever is wrong with a payment is an error, and an error undoes all of it.
CREATE OR REPLACE FUNCTION ledger.apply_payment(key text, payload jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledger, pg_temp
AS $$
DECLARE
    debtor integer := payload ->> 'from';
    creditor integer := payload ->> 'to';
    amount bigint := payload ->> 'cents';
BEGIN
    IF debtor IS NULL OR creditor IS NULL OR amount IS NULL OR debtor = creditor THEN
        RAISE EXCEPTION 'not a payment from one account to another'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = payload::text;
    END IF;
    PERFORM post(key, debtor, creditor, amount);
END
$$;
