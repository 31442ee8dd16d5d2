-- SPDX-License-Identifier: PostgreSQL
-- What becomes of orders: a state each, the steps that led there, and mails that are to be sent.
CREATE EXTENSION inbox;
CREATE SCHEMA shop;
CREATE ROLE shop_puller LOGIN;
GRANT USAGE ON SCHEMA shop TO shop_puller;
SELECT inbox_grant('shop_puller', 'puller');

CREATE TABLE shop.orders (id text PRIMARY KEY, state text NOT NULL, grams integer);
CREATE TABLE shop.step (n bigint GENERATED ALWAYS AS IDENTITY, order_id text NOT NULL, event text NOT NULL);
CREATE TABLE shop.mail_outbox (key text NOT NULL, body text NOT NULL, sent_at timestamptz);

-- A step from a state that the order is not in is an error: here it would mean that the order of
-- messages was not kept.
CREATE FUNCTION shop.advance(id text, before text, after text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE shop.orders o SET state = after WHERE o.id = advance.id AND o.state = before;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % is not %', id, before USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
END
$$;

CREATE FUNCTION shop.on_placed(m inbox_message, event jsonb) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    INSERT INTO shop.orders (id, state) VALUES (m.ordering_key, 'placed');
END;

CREATE FUNCTION shop.on_paid(m inbox_message, event jsonb) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    SELECT shop.advance(m.ordering_key, 'placed', 'paid');
END;

CREATE FUNCTION shop.on_packed(m inbox_message, event jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF event -> 'grams' IS NULL THEN
        RAISE EXCEPTION 'a parcel without a weight' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM shop.advance(m.ordering_key, 'paid', 'packed');
    UPDATE shop.orders SET grams = (event ->> 'grams')::integer WHERE id = m.ordering_key;
END
$$;

-- The mail is sent later, by whoever reads the outbox: a handler that sends it would send it again
-- with every attempt.
CREATE FUNCTION shop.on_shipped(m inbox_message, event jsonb) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    SELECT shop.advance(m.ordering_key, 'packed', 'shipped');
    INSERT INTO shop.mail_outbox (key, body)
        VALUES (m.key, format('%s is on its way: %s', m.ordering_key, event ->> 'parcel'));
END;

CREATE FUNCTION shop.on_event(m inbox_message) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = shop, public, pg_temp
AS $$
DECLARE
    event jsonb := convert_from(m.payload, 'UTF8');
    kind text := m.attributes ->> 'event_type';
BEGIN
    CASE kind
        WHEN 'placed' THEN PERFORM on_placed(m, event);
        WHEN 'paid' THEN PERFORM on_paid(m, event);
        WHEN 'packed' THEN PERFORM on_packed(m, event);
        WHEN 'shipped' THEN PERFORM on_shipped(m, event);
        ELSE
            RAISE EXCEPTION 'no handler for event type "%"', kind USING ERRCODE = 'feature_not_supported';
    END CASE;
    INSERT INTO step (order_id, event) VALUES (m.ordering_key, kind);
END
$$;
REVOKE ALL ON FUNCTION shop.on_event FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shop.on_event TO shop_puller;

-- Nothing of an order happens behind a step that has failed, until a person has decided.
SELECT inbox_configure('orders', order_policy => 'park', max_attempts => 1);

-- ---- the other side ---------------------------------------------------------------------------

CREATE SCHEMA producer;
CREATE TABLE producer.event AS
    SELECT row_number() OVER (ORDER BY step, number)::integer AS n, format('order-%s', number) AS order_id,
        event, format('order-%s/%s', number, event) AS key,
        CASE event WHEN 'packed' THEN jsonb_build_object('grams', 100 + number)
            WHEN 'shipped' THEN jsonb_build_object('parcel', 7000 + number) ELSE '{}' END AS payload
    FROM generate_series(1, 40) number,
        unnest('{placed,paid,packed,shipped}'::text[]) WITH ORDINALITY AS s(event, step);
-- Order 21 has an event that nobody knows yet.
UPDATE producer.event SET n = n + 1 WHERE n > (SELECT n FROM producer.event WHERE key = 'order-21/paid');
INSERT INTO producer.event SELECT n + 1, order_id, 'wrapped', 'order-21/wrapped', '{}'
    FROM producer.event WHERE key = 'order-21/paid';

-- All that was paid is published again, and the weight of order 13 was forgotten.
CREATE VIEW producer.message AS
    SELECT row_number() OVER (ORDER BY again, n)::integer AS n,
        (CASE key WHEN 'order-13/packed' THEN '{}' ELSE payload END)::text AS data,
        jsonb_build_object('idempotency_key', key, 'event_type', event) AS attributes,
        order_id AS ordering_key
    FROM (SELECT false AS again, * FROM producer.event
        UNION ALL SELECT true, * FROM producer.event WHERE event = 'paid') AS m;
