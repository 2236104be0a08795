// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.nio.file.Files
import java.util.Base64
import java.util.concurrent.FutureTask

import scala.concurrent.{Await, Future}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.DurationInt
import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.execution.streaming.state.dstl.{Patience, QuerySuite}
import org.apache.spark.sql.types._

/** What is read from a copy while a batch is applied to it. */
class StateCopySuite extends QuerySuite with Patience {
  import StateCopySuite._

  private val keys = 0 until 20
  private val all = new StateSelection(null, null, null, null, null)
  private val key = new StructType().add("key", IntegerType)
  private val value = new StructType().add("count", LongType)

  private def found(lookup: KeyLookup, of: Int*): Seq[Found] = found(lookup, key, of)

  private def found(lookup: KeyLookup, key: StructType, of: Seq[Any]): Seq[Found] = {
    val keys = of.map(one => new GenericInternalRow(Array[Any](one)))
    val answer = lookup.get(ArrowBytes.write(ArrowRows.schema(key), keys))
    ArrowBytes.read(Base64.getDecoder.decode(answer)) { rows =>
      (0 until rows.numRows).map { of =>
        val row = rows.getRow(of)
        Found(row.getLong(0), row.getInt(2), row.getStruct(3, value.length).getLong(0))
      }
    }
  }

  private def lookUp(lookup: KeyLookup, of: Int): Future[Found] = Future(found(lookup, of).head)

  private def now(found: Future[Found]): Found = Await.result(found, 60.seconds)

  /** Calls `use` with a copy as of batch 0, and its follower. */
  private def withCopy[T](use: (StateFollower, StateCopy) => T): T = {
    val follower = new StateFollower(checkpoint.toString, Map.empty[String, String].asJava)
    val copy = follower.copy(all)
    try {
      val metadata = Files.readAllLines(checkpoint.resolve("offsets/0")).get(1)
      follower.load(copy, new StateBatch(0, metadata), committed = -1)
      use(follower, copy)
    } finally {
      copy.close()
      follower.close()
    }
  }

  test("a lookup of one key waits for its store alone, that of several for the batch; each value has its batch") {
    val input = numbers()
    complete(start(counts(input, keys.size), "counts"), input, keys, keys)
    withCopy { (follower, copy) =>
      val lookup = copy.lookup(all)
      val before = keys.map(of => of -> now(lookUp(lookup, of))).toMap
      assert(before.values.forall(of => of.batch == 0 && of.count == 1))
      assert(before.values.map(_.partition).toSet == Set(0, 1, 2))
      def in(partition: Int) = keys.find(before(_).partition == partition).get
      val entry = follower.entry(1, Files.size(checkpoint.resolve("commits/1")))

      val middle = copy.reading(of => of.store(of.tables.head, 1).get)
      val several = new FutureTask(() => found(lookup, in(0), in(2)))
      val (applied, waiting) = middle.synchronized {
        val applied = Future(copy.apply(entry, 1, committed = -1))
        eventually(assert(now(lookUp(lookup, in(0))) == Found(1, 0, 2)))
        assert(now(lookUp(lookup, in(2))) == Found(0, 2, 1))
        val thread = new Thread(several)
        thread.start()
        eventually(assert(thread.getState == Thread.State.WAITING))
        (applied, lookUp(lookup, in(1)))
      }
      Await.result(applied, 60.seconds)
      assert(Set(Found(0, 1, 1), Found(1, 1, 2))(now(waiting)))
      assert(several.get() == Seq(Found(1, 0, 2), Found(1, 2, 2)))
      keys.foreach(of => assert(now(lookUp(lookup, of)) == Found(1, before(of).partition, 2)))
    }
  }

  test("a lookup leaves the row that another reader of the same partition has as it is") {
    val input = numbers()
    complete(start(counts(input, keys.size), "counts"), input, keys.flatMap(of => Seq.fill(of + 1)(of)))
    withCopy { (_, copy) =>
      copy.reading { loaded =>
        Using.resource(new OpenedReader(loaded.read, loaded.tables.head, 0)) { reader =>
          assert(reader.next())
          val row = reader.get()
          def pair = (row.getStruct(0, 1).getInt(0), row.getStruct(1, 1).getLong(0))
          val before = pair
          keys.foreach(of => assert(found(copy.lookup(all), of).head.count == of + 1))
          assert(pair == before && before._2 == before._1 + 1)
        }
      }
    }
  }

  test("a negative zero and any NaN are looked up as the keys that Spark groups them under") {
    val input = numbers()
    val keyed = input.toDF().selectExpr("IF(value = 0, double('NaN'), 0D) AS key")
    complete(start(keyed.groupBy("key").count(), "reals"), input, 0 to 2)
    withCopy { (_, copy) =>
      val asked = Seq(-0.0, 0.0, java.lang.Double.longBitsToDouble(0xfff8000000000001L), Double.NaN)
      val real = new StructType().add("key", DoubleType)
      val each = asked.flatMap(of => found(copy.lookup(all), real, Seq(of)))
      assert(each.map(_.count) == Seq(2, 2, 1, 1))
      assert(found(copy.lookup(all), real, asked) == each)
    }
  }

  test("a key with a null in an array is looked up as any other") {
    val input = numbers()
    val keyed = input.toDF().selectExpr("array(IF(value = 0, NULL, 0D), 1D) AS key")
    complete(start(keyed.groupBy("key").count(), "arrays"), input, 0 to 2)
    withCopy { (_, copy) =>
      val reals = new StructType().add("key", ArrayType(DoubleType))
      val asked = Seq[Any](null, 0.0, -0.0).map(of => new GenericArrayData(Array[Any](of, 1.0)))
      assert(found(copy.lookup(all), reals, asked).map(_.count) == Seq(1, 2, 2))
    }
  }
}

private object StateCopySuite {
  final case class Found(batch: Long, partition: Int, count: Long)
}
