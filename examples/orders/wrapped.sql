-- SPDX-License-Identifier: PostgreSQL
-- The deploy that knows of wrapping.
DO $$
BEGIN
    EXECUTE replace(pg_get_functiondef('shop.on_event(inbox_message)'::regprocedure),
        'WHEN ''packed''', 'WHEN ''wrapped'' THEN NULL;
        WHEN ''packed''');
END
$$;
