-- SPDX-License-Identifier: PostgreSQL
-- A bad deploy: somebody has renamed a field of the payload, on this side only.
SELECT replace(pg_get_functiondef('ledger.apply_payment'::regproc), '''cents''', '''amount''') \gexec
