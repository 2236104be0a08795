package org.apache.spark.sql.execution.streaming.state.dstl.runtime

import java.lang.reflect.Modifier
import java.nio.charset.StandardCharsets.UTF_8

import scala.util.Using

import org.apache.hadoop.fs.{FSDataInputStream, FileStatus, Path, PathFilter}
import org.apache.xbean.asm9.{ClassReader, ClassVisitor, MethodVisitor, Opcodes, Type}
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/** What Spark may call in classes of ours is passed on, or is known to be left as Spark has it. */
class PassedOnSuite extends AnyFunSuite {
  private val concrete = SparkUses.extending.filterNot(of => Modifier.isAbstract(of.getModifiers))

  test("whatever wraps something of Spark's passes on each of its methods") {
    concrete.foreach(ours => assert(lost(ours) == Nil, ours.getName))
  }

  test("a method that a wrapper has from above, and does not pass on, is named") {
    assert(wrapped(classOf[Forgetful]) == Seq(classOf[CheckpointFileManager]))
    val closes = classOf[CheckpointFileManager].getMethods.exists(_.getName == "close")
    assert(
      lost(classOf[Forgetful]) ==
        Option.when(closes)("CheckpointFileManager.close()").toSeq :+
        "CheckpointFileManager.list(org.apache.hadoop.fs.Path)"
    )
  }

  /** Beside a method that ours overrides, a line of Spark may have another that it calls in its place. */
  test("each method that is left as Spark has it is in the list for this line of Spark") {
    // What is below another of ours leaves no more than that does.
    val found =
      concrete.filterNot(of => concrete.contains(of.getSuperclass)).flatMap(ours =>
        inherited(ours).map(form => s"${ours.getName.split('.').last}: $form")
      ).map(withOneSeq).distinct.sorted
    val known = lookedAt.map(withOneSeq)
    val more = found.diff(known)
    val gone = known.diff(found)
    assert(
      more.isEmpty && gone.isEmpty,
      s"""
         |Spark ${BuiltFor.Version} is not as it was when inherited-${BuiltFor.Line}.txt was written.
         |Who calls these, and do they do what one does that is overridden?
         |${more.mkString("\n")}
         |These are not there any more:
         |${gone.mkString("\n")}
         |""".stripMargin
    )
  }

  // Scala gives each class with a logger methods of its own for it.
  private val loggersOwn =
    Class.forName("org.apache.spark.internal.Logging").getDeclaredMethods.map(_.getName).toSet

  /** What Spark has in the classes above one of ours, and that one leaves as it is: forms with the class they are from. */
  private def inherited(ours: Class[_]): Seq[String] = {
    val own =
      SparkUses.ancestors(ours).filter(SparkUses.isOurs).flatMap(SparkUses.declaredBy).map(SparkUses.formOf).toSet
    for {
      above <- SparkUses.ancestors(ours).filter(SparkUses.isSparks)
      method <- SparkUses.declaredBy(above)
      // Not of a default argument, or of a trait with a logger.
      if !method.getName.contains("$") && !loggersOwn(method.getName) && !own(SparkUses.formOf(method))
    } yield s"${above.getSimpleName}.${SparkUses.formOf(method)}"
  }

  /** Classes of Spark's of which a class of ours is one, and of which it has another in a field: it wraps that. */
  private def wrapped(ours: Class[_]): Seq[Class[_]] = {
    val fields = SparkUses.ancestors(ours).filter(SparkUses.isOurs).flatMap(_.getDeclaredFields).map(_.getType)
    SparkUses.ancestors(ours).filter(above => SparkUses.isSparks(above) && fields.exists(above.isAssignableFrom))
  }

  /** What is called Seq is another one in Scala 2.13 than in Scala 2.12. */
  private def withOneSeq(form: String): String = form.replace("scala.collection.immutable.Seq", "scala.collection.Seq")

  /** Methods of what is wrapped that the wrapper does not have itself, or that only a trait of Spark's has given it. */
  private def lost(ours: Class[_]): Seq[String] = (for {
    above <- wrapped(ours)
    method <- above.getDeclaredMethods
    modifiers = method.getModifiers
    if !method.isSynthetic && !Modifier.isStatic(modifiers) && !Modifier.isPrivate(modifiers)
    if !method.getName.contains("$")
    own = Iterator.iterate[Class[_]](ours)(
      _.getSuperclass
    ).takeWhile(_.getName.startsWith(getClass.getPackageName.stripSuffix("runtime")))
    if !own.exists { of =>
      of.getDeclaredMethods.exists { mine =>
        mine.getName == method.getName && mine.getParameterTypes.sameElements(method.getParameterTypes) &&
        !givenBySpark(of)(mine.getName + Type.getMethodDescriptor(mine))
      }
    }
  } yield s"${above.getSimpleName}.${method.getName}(${method.getParameterTypes.map(_.getName).mkString(", ")})").distinct.sorted

  /** Methods that Scala has put into a class because a trait of Spark's has them: they call that trait's. */
  private def givenBySpark(of: Class[_]): Set[String] = {
    val found = Set.newBuilder[String]
    val code = getClass.getResourceAsStream(s"/${of.getName.replace('.', '/')}.class")
    Using.resource(code)(new ClassReader(_)).accept(
      new ClassVisitor(Opcodes.ASM9) {
        override def visitMethod(
            access: Int,
            name: String,
            descriptor: String,
            signature: String,
            exceptions: Array[String]
        ): MethodVisitor = new MethodVisitor(Opcodes.ASM9) {
          override def visitMethodInsn(opcode: Int, owner: String, called: String, of: String, isI: Boolean): Unit =
            if (opcode == Opcodes.INVOKESTATIC && called == s"$name$$" && owner.startsWith("org/apache/spark/"))
              found += name + descriptor
        }
      },
      0
    )
    found.result()
  }

  private def lookedAt: Seq[String] = {
    val file = getClass.getResourceAsStream(s"inherited-${BuiltFor.Line}.txt")
    if (file == null) Nil
    else Using.resource(scala.io.Source.fromInputStream(file, UTF_8.name))(_.getLines().filter(_.nonEmpty).toVector)
  }
}

/** Passes on what it must, and nothing else. */
private class Forgetful(below: CheckpointFileManager) extends CheckpointFileManager {
  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    below.createAtomic(file, overwriteIfPossible)
  override def open(file: Path): FSDataInputStream = below.open(file)
  override def list(directory: Path, filter: PathFilter): Array[FileStatus] = below.list(directory, filter)
  override def mkdirs(directory: Path): Unit = below.mkdirs(directory)
  override def exists(file: Path): Boolean = below.exists(file)
  override def delete(file: Path): Unit = below.delete(file)
  override def isLocal: Boolean = below.isLocal
  override def createCheckpointDirectory(): Path = below.createCheckpointDirectory()
}
