-- SPDX-License-Identifier: PostgreSQL
-- A bad deploy: somebody has renamed a field of the payload, on this side only.
CREATE OR REPLACE FUNCTION ledger.apply_payment(key text, payload jsonb) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = ledger, pg_temp
AS $$
DECLARE
    debtor integer := payload ->> 'from';
    creditor integer := payload ->> 'to';
    amount bigint := payload ->> 'amount';
BEGIN
    IF debtor IS NULL OR creditor IS NULL OR amount IS NULL OR debtor = creditor THEN
        RAISE EXCEPTION 'not a payment from one account to another'
            USING ERRCODE = 'invalid_parameter_value', DETAIL = payload::text;
    END IF;
    PERFORM post(key, debtor, creditor, amount);
END
$$;
