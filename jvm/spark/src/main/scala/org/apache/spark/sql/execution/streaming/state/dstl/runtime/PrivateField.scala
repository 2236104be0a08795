package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.lang.reflect.Field

/** A field that a class of Spark keeps to itself, where no method leads to it. */
private[dstl] object PrivateField {
  def apply(of: Class[_], name: String): Field = {
    val field = of.getDeclaredField(name)
    field.setAccessible(true)
    field
  }
}
