// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench

import java.io.File

import scala.reflect.{classTag, ClassTag}

import com.fasterxml.jackson.databind.DeserializationFeature._
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.module.scala.DefaultScalaModule

/** Specifications that Python has written, and results that it reads. */
object Json {
  private val mapper = JsonMapper.builder().addModule(DefaultScalaModule)
    .enable(FAIL_ON_MISSING_CREATOR_PROPERTIES, FAIL_ON_NULL_FOR_PRIMITIVES).disable(FAIL_ON_UNKNOWN_PROPERTIES).build()

  /** @throws com.fasterxml.jackson.databind.JsonMappingException naming the field that is missing or wrong */
  def read[T: ClassTag](file: File): T = mapper.readValue(file, classTag[T].runtimeClass.asInstanceOf[Class[T]])

  def write(value: Map[String, Any]): String = mapper.writeValueAsString(value)
}
