package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.state.dstl.{
  DstlCheckpointFileManager,
  DstlRelease,
  DstlStateStoreProvider,
  Warnings
}
import org.apache.spark.sql.execution.streaming.state.dstl.store.DstlRocksDB
import org.apache.spark.util.LongAccumulator

class SparkVersionSuite extends AnyFunSuite {
  private def unnecessary: Seq[String] = fail("what is used was looked for")

  test("the Spark that was compiled against is the one that the tests run, and is taken as it is") {
    assert(org.apache.spark.SPARK_VERSION == BuiltFor.Version)
    assert(SparkVersion.judge(BuiltFor.Version, unnecessary).isEmpty)
    assert(DstlRelease.mismatch() == null)
  }

  test("another line of Spark is refused, with the jar to take") {
    Seq("3.4.3", "4.20.0", "5.0.0", s"${BuiltFor.Line}0.1").foreach { version =>
      val error = SparkVersion.judge(version, unnecessary).get.getMessage
      assert(error.contains(s"runs in Spark $version") && error.contains(s"for Spark ${BuiltFor.Line}"), error)
    }
  }

  test(
    "a patch release that has all that is used is taken with a warning, one that has not is refused with what it lacks"
  ) {
    val version = s"${BuiltFor.Line}.99"
    var verdict = Option.empty[Throwable]
    val warnings = Warnings.during { verdict = SparkVersion.judge(version, Nil) }
    assert(verdict.isEmpty)
    assert(warnings.exists(line => line.contains(version) && line.contains(BuiltFor.Version)), warnings)
    val error = SparkVersion.judge(version, Seq("class a.B", "a.C.d (I)V")).get.getMessage
    assert(error.contains(version) && error.contains("class a.B; a.C.d (I)V"), error)
  }

  test(
    "Spark has all that is used of it, and each class below one of Spark's overrides all forms of what it overrides"
  ) {
    assert(SparkUses.lacking() == Nil)
    val extending: Seq[Class[_]] =
      Seq(classOf[DstlRocksDB], classOf[DstlStateStoreProvider], classOf[DstlCheckpointFileManager])
    assert(extending.forall(SparkUses.extending.contains(_)), SparkUses.extending)
  }

  test("a class, a method or a field that is not there is named") {
    val owner = "org.apache.spark.util.LongAccumulator"
    assert(SparkUses.lackingMember(owner, "add", "(J)V").isEmpty)
    assert(SparkUses.lackingMember(owner, "<init>", "()V").isEmpty)
    assert(SparkUses.lackingMember(owner, "id", "()J").isEmpty)
    assert(SparkUses.lackingMember(owner, "add", "(I)V").contains(s"$owner.add (I)V"))
    assert(SparkUses.lackingMember(owner, "added", "J").contains(s"$owner.added J"))
    assert(SparkUses.lackingMember("org.apache.spark.No", "add", "(J)V").contains("class org.apache.spark.No"))
  }

  test("a class that overrides one form of a method and not another is named") {
    val passedBy = SparkUses.passedBy(classOf[OneFormOfTwo])
    assert(passedBy.contains(s"${classOf[OneFormOfTwo].getName} does not override add(java.lang.Long)"), passedBy)
  }
}

/** Spark has two forms of `add`. */
private class OneFormOfTwo extends LongAccumulator {
  override def add(v: Long): Unit = ()
}
