-- SPDX-License-Identifier: PostgreSQL
\echo Use "CREATE EXTENSION inbox" to load this file. \quit

